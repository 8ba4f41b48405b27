"""A server without allocations on a host's root provider is resized on that host."""

from typing import Any
from unittest import mock

from keystoneauth1.exceptions import ConnectFailure
from nova import exception
from nova.compute import claims

from cpu_tiers.nova.scheduler import own_host
from tests.nova.computes import Computes
from tests.nova.numa.agreement import cells_of, held_of_nodes, topology_of
from tests.nova.numa.pinning import ONE_AND_THREE, PINNED, PINNING, TWO
from tests.nova.traffic import Send, Traffic


class Resizes(Computes):
    """One host of two nodes with four dedicated CPUs each; servers have no disk there."""

    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.flags(allow_resize_to_same_host=True)
        self.start_host("one")

    def start(self, specs: dict[str, str], *, vcpus: int) -> None:
        self.server = self.boot(self.flavor("old", specs, vcpus=vcpus))
        self.uuid = self.server["id"]
        self.before = self.state()

    def state(self) -> Any:
        """Check that all agree on a server; return where it is, what it holds, and its pins."""
        pins = topology_of(self.uuid).obj_to_primitive()
        return self.where(self.uuid), held_of_nodes(self, self.uuid), pins

    def occupy(self, vcpus: int) -> None:
        """Take CPUs of a node."""
        self.boot(self.flavor(f"{vcpus} others", PINNED, vcpus=vcpus))

    def resize(self, specs: dict[str, str], *, vcpus: int) -> Any:
        """Resize, revert, resize again and confirm; return where the server was and is."""
        flavor = self.flavor("new", specs, vcpus=vcpus)
        _, held, _ = self.before
        self._resize_server(self.server, flavor)
        self.state()
        migration = self.migration_of(self.uuid)
        assert held_of_nodes(self, migration) == held
        self._revert_resize(self.server)
        assert self.state() == self.before
        assert held_of_nodes(self, migration) == {}
        self._resize_server(self.server, flavor)
        resized = self.state()
        self._confirm_resize(self.server)
        assert self.state() == resized
        assert sum(len(cell.pinned_cpus) for cell in cells_of("one").values()) == self.taken()
        return self.before[0], resized[0]

    def taken(self) -> int:
        """Return how many dedicated CPUs the servers hold in Placement."""
        usages = [
            self.placement.get(f"/resource_providers/{provider['uuid']}/usages").body["usages"]
            for provider in self.placement.get("/resource_providers").body["resource_providers"]
        ]
        return sum(usage.get("PCPU", 0) for usage in usages)


class TestResize(Resizes):
    def test_grows_on_its_node(self) -> None:
        self.occupy(4)
        self.start(PINNED, vcpus=1)
        before, after = self.resize(PINNED, vcpus=3)  # and one is left
        assert after == before
        assert self.taken() == 4 + 3

    def test_shrinks_on_its_node(self) -> None:
        self.occupy(4)
        self.start(PINNED, vcpus=3)
        before, after = self.resize(PINNED, vcpus=1)
        assert after == before
        assert self.taken() == 4 + 1

    def test_goes_to_another_node(self) -> None:
        self.start(PINNED, vcpus=2)
        before, after = self.resize(PINNED, vcpus=4)
        assert {*before, *after} == {("one", 0), ("one", 1)}
        assert self.taken() == 4

    def test_of_one_and_two_nodes(self) -> None:
        self.start(PINNED, vcpus=2)
        before, after = self.resize(TWO, vcpus=4)
        assert len(before) == 1
        assert len(after) == 2
        assert self.taken() == 0

    def test_of_two_and_one_nodes(self) -> None:
        self.start(PINNED | ONE_AND_THREE, vcpus=4)
        before, after = self.resize(PINNED, vcpus=2)
        assert len(before) == 2
        assert len(after) == 1
        assert self.taken() == 2


class TestFailure(Resizes):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def refused(self, flavor: str) -> list[str]:
        """Have every host refuse a resize; return which did."""
        hosts: list[str] = []

        def refuse(claim: Any, *args: Any) -> None:
            hosts.append(claim.tracker.host)
            raise exception.ComputeResourcesUnavailable(reason="no")

        with mock.patch.object(claims.MoveClaim, "_claim_test", refuse):
            self.api.post_server_action(self.uuid, {"resize": {"flavorRef": flavor}})
            self._wait_for_action_fail_completion(self.server, "resize", "compute_prep_resize")
        self._wait_for_state_change(self.server, "ERROR")  # as Nova leaves it
        return hosts

    def test_of_the_claim(self) -> None:
        self.start(PINNED, vcpus=1)
        assert self.refused(self.flavor("new", PINNED, vcpus=3)) == ["one"]
        assert self.state() == self.before
        assert self.taken() == 1

    def test_of_the_claim_on_another_host(self) -> None:
        """The other node of that host is tried, and then not the server's own host."""
        self.start(PINNED, vcpus=1)
        self.start_host("two")  # the emptier one
        assert self.refused(self.flavor("new", PINNED, vcpus=3)) == ["two", "two"]
        assert self.state() == self.before
        assert self.taken() == 1

    def test_of_the_claim_and_another_host(self) -> None:
        self.start(PINNED, vcpus=1)
        self.start_host("two")
        other = self.flavor("other", PINNED, vcpus=1)
        for _ in range(2):
            self.boot_on("two", other)
        assert self.refused(self.flavor("new", PINNED, vcpus=3)) == ["one", "two"]
        assert self.state() == self.before
        assert self.taken() == 1 + 2

    def test_room_is_taken_meanwhile(self) -> None:
        self.start(PINNED, vcpus=1)
        claim, rivals = own_host.Resize.claim, [4, 3]

        def late(*args: Any) -> bool:
            while rivals:
                self.occupy(rivals.pop())
            return claim(*args)

        with mock.patch.object(own_host.Resize, "claim", late):
            reason = self.fail_to_resize(self.server, self.flavor("new", PINNED, vcpus=2))
        assert "No valid host" in reason
        assert self.state() == self.before
        assert self.taken() == 3 + 4 + 1

    def test_no_answer_to_the_write_and_to_the_read_after_it(self) -> None:
        """Placement carries the write out, and then the write that takes the first back.

        The claim of the host's other node has an old generation: Placement refuses both writes.
        """
        self.start(PINNED, vcpus=1)
        writes: list[int] = []

        def unheard(send: Send, method: str, url: str) -> Any:
            if method == "post" and url == "/allocations":
                writes.append(send().status_code)
            if writes:
                raise ConnectFailure("no answer")
            return send()

        self.useFixture(Traffic(unheard))
        reason = self.fail_to_resize(self.server, self.flavor("new", PINNED, vcpus=2))
        assert "No valid host" in reason
        assert writes == [204, 204, 409, 409]
        assert self.state() == self.before
        assert self.taken() == 1

    def test_no_room_for_both(self) -> None:
        self.occupy(4)
        self.start(PINNED, vcpus=2)
        reason = self.fail_to_resize(self.server, self.flavor("new", PINNED, vcpus=3))
        assert "No valid host" in reason
        assert self.state() == self.before
        assert self.taken() == 4 + 2
