"""A server without allocations on a host's root provider is resized on that host."""

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from keystoneauth1.exceptions import ConnectFailure
from nova import exception, objects
from nova.compute import claims

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import options
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import same_host_resize
from tests.nova.computes import Computes
from tests.nova.numa.agreement import cells_of, held_of_nodes, topology_of
from tests.nova.numa.pinning import ONE_AND_THREE, PINNED, PINNING, TWO


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
        """It does not fall back to its own."""
        self.start(PINNED, vcpus=1)
        self.start_host("two")  # the emptier one
        assert self.refused(self.flavor("new", PINNED, vcpus=3)) == ["two"]
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
        claim = same_host_resize._Resize.claim

        def late(*args: Any) -> bool:
            self.occupy(3)
            self.occupy(4)
            return claim(*args)

        with mock.patch.object(same_host_resize._Resize, "claim", late):
            reason = self.fail_to_resize(self.server, self.flavor("new", PINNED, vcpus=2))
        assert "No valid host" in reason
        assert self.state() == self.before
        assert self.taken() == 3 + 4 + 1

    def test_no_room_for_both(self) -> None:
        self.occupy(4)
        self.start(PINNED, vcpus=2)
        reason = self.fail_to_resize(self.server, self.flavor("new", PINNED, vcpus=3))
        assert "No valid host" in reason
        assert self.state() == self.before
        assert self.taken() == 4 + 2


class Reports:
    """Nova's report client, as far as the seams call it; it records the reads."""

    def __init__(self, answer: Any = None) -> None:
        self.answer, self.reads = answer, 0

    def get_allocs_for_consumer(self, context: Any, consumer: str) -> Any:
        self.reads += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


ROOT, NODE, ELSEWHERE = "root", "root's NUMA node", "the root of another host"
SUMMARIES = {ROOT: ROOT, NODE: ROOT, ELSEWHERE: ELSEWHERE}
HELD = {"allocations": {NODE: {"resources": {"PCPU": 1}}}, "consumer_generation": 3}
NOTHING: dict[str, Any] = {"allocations": {}}


@pytest.fixture
def resizing(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The option is on, and the database has a resize of the server from the host of ROOT."""
    migration = SimpleNamespace(uuid="m", source_compute="one", source_node="one")
    found = SimpleNamespace(objects=[migration])
    node = SimpleNamespace(uuid=ROOT)
    monkeypatch.setattr(objects.MigrationList, "get_by_filters", lambda *args: found)
    monkeypatch.setattr(objects.ComputeNode, "get_by_host_and_nodename", lambda *args: node)
    monkeypatch.setattr(same_host_resize, "target_cell", lambda *args: nullcontext())
    options.register(filter_scheduler)
    CONF.set_override("query_placement_for_numa", True, filter_scheduler.GROUP)
    yield
    CONF.clear_override("query_placement_for_numa", filter_scheduler.GROUP)


def select(
    client: Reports, *, roots: Mapping[str, str] = SUMMARIES, moved: bool = True, **spec: Any
) -> Any:
    """Select hosts for a server; return the resize that the claim would see."""

    def original(self: Any, *args: Any) -> list[Any]:
        seen.append(same_host_resize._RESIZE.get())
        return []

    seen: list[Any] = []
    manager = SimpleNamespace(placement_client=client)
    context = SimpleNamespace(elevated=SimpleNamespace)
    cell = objects.CellMapping(uuid="0d6a2f9a-9d0e-4f2c-8f5b-5a2d0dd51a11") if moved else None
    spec_obj = objects.RequestSpec(requested_destination=objects.Destination(cell=cell), **spec)
    summaries = {uuid: {"root_provider_uuid": root} for uuid, root in roots.items()}
    wrapped = same_host_resize._select(original)
    wrapped(manager, context, spec_obj, ["s"], {"p": []}, summaries, "1.36", True)
    (resize,) = seen
    return resize


@pytest.mark.usefixtures("resizing")
def test_a_resize_is_found_with_one_read() -> None:
    client = Reports(HELD)
    resize = select(client)
    assert (resize.migration, resize.root, resize.old) == ("m", ROOT, HELD)
    assert resize.providers == {ROOT, NODE}
    assert client.reads == 1


@pytest.mark.usefixtures("resizing")
@pytest.mark.parametrize(
    "request_values",
    [
        pytest.param({"moved": False}, id="a boot"),
        pytest.param({"ignore_hosts": ["one"]}, id="Nova keeps the server off its own host"),
        pytest.param({"roots": {ELSEWHERE: ELSEWHERE}}, id="its own host is no candidate"),
    ],
)
def test_nothing_is_read_for_a_server_that_leaves_its_host(request_values: Any) -> None:
    client = Reports(HELD)
    assert select(client, **request_values) is None
    assert client.reads == 0


@pytest.mark.usefixtures("resizing")
@pytest.mark.parametrize("value", [None, False])
def test_nothing_is_read_while_the_option_is_off(
    monkeypatch: pytest.MonkeyPatch, value: bool | None
) -> None:
    def query(*args: Any) -> Any:
        raise AssertionError

    monkeypatch.setattr(objects.MigrationList, "get_by_filters", query)
    CONF.set_override("query_placement_for_numa", value, filter_scheduler.GROUP)
    client = Reports(HELD)
    assert select(client) is None
    assert client.reads == 0


@pytest.mark.usefixtures("resizing")
def test_a_migration_that_has_the_allocations_needs_no_seam() -> None:
    assert select(Reports(NOTHING)) is None


@pytest.mark.usefixtures("resizing")
@pytest.mark.parametrize(
    "failure",
    [
        pytest.param(ConnectFailure("no route"), id="no connection"),
        pytest.param(
            exception.ConsumerAllocationRetrievalFailed(consumer_uuid="s", error="503"), id="503"
        ),
        pytest.param(ValueError("not JSON"), id="half an answer"),
        pytest.param(KeyError("allocations"), id="another JSON"),
    ],
)
def test_after_a_failed_read_the_own_host_is_refused(
    failure: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    """Nova would claim the host, and the server would keep its old amounts there."""
    resize = select(Reports(failure))
    assert resize.providers == {ROOT, NODE}
    assert not resize.claim(None, None, "s", {})
    read, claim = caplog.messages
    assert read.startswith("The allocations of server s are not known: ")
    assert claim.startswith("Server s cannot be resized on its host: ")


@pytest.mark.usefixtures("resizing")
def test_a_failed_query_of_the_database_is_no_valid_host(monkeypatch: pytest.MonkeyPatch) -> None:
    def query(*args: Any) -> Any:
        raise OSError("no database")

    monkeypatch.setattr(objects.MigrationList, "get_by_filters", query)
    with pytest.raises(exception.NoValidHost, match="no database"):
        select(Reports(HELD))


def test_a_claim_that_placement_does_not_answer_is_refused() -> None:
    """As Nova's claim_resources, which returns None after a connection failure."""

    def post(*args: Any, **values: Any) -> Any:
        raise ConnectFailure("no route")

    reads = Reports(ConnectFailure("no route"))
    reads.post = post  # type: ignore[attr-defined]  # the test's client reads only
    resize = same_host_resize._Resize(
        migration="m", root=ROOT, providers=frozenset({NODE}), old=HELD
    )
    context = SimpleNamespace(global_id="req-1")
    assert not resize.claim(reads, context, "s", {})
