"""Several servers at once, and what happens while something else is under way."""

import contextlib
from typing import Any
from unittest import mock

from nova import exception
from nova.cmd import manage
from nova.compute import rpcapi

from tests.nova.computes import Computes
from tests.nova.numa.agreement import cells_of
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import ONE_AND_THREE, PINNED, PINNING, TWO
from tests.nova.provider_tree import ANCHOR


class TestMany(Computes):
    """Two hosts, each with four dedicated CPUs on each of two nodes."""

    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Life(self)
        self.life.start("one")
        self.life.start("two")

    def boot_many(self, flavor: str, count: int, state: str, **values: Any) -> list[Any]:
        """Boot servers in one request; return those that it made."""
        before = {one["id"] for one in self.api.get_servers(detail=False)}
        body = self._build_server(flavor_id=flavor, networks="none", **values)
        self.api.post_server({"server": {**body, "min_count": count, "max_count": count}})
        made = [one for one in self.api.get_servers(detail=False) if one["id"] not in before]
        assert len(made) == count
        return [self._wait_for_state_change(one, state) for one in made]

    def fill(self, flavor: str, count: int, **values: Any) -> list[Any]:
        """Boot servers, and one more, for which there must be no room anywhere."""
        servers = self.boot_many(flavor, count, "ACTIVE", **values)
        for self.server in servers:
            self.life.is_on(self.host_of(self.server))
        full = self.life.used()
        (over,) = self.boot_many(flavor, 1, "ERROR", **values)
        assert "No valid host was found" in self.fault_of(over)
        assert self.life.used() == full
        return [*servers, over]

    def empty(self, servers: list[Any]) -> None:
        *others, self.server = servers
        for one in others:
            self._delete_server(one)
        self.life.end()

    def test_until_both_hosts_are_full(self) -> None:
        for specs, vcpus, count in (
            (PINNED, 2, 8),
            (PINNED | TWO, 4, 4),
            (PINNED, 3, 4),  # one CPU is left of each node
        ):
            servers = self.fill(self.flavor(f"flavor {count} {vcpus}", specs, vcpus=vcpus), count)
            free = [cell.avail_pcpus for host in self.computes for cell in cells_of(host).values()]
            assert free == ([1] * 4 if vcpus == 3 else [0] * 4)
            self.empty(servers)

    def test_past_all_filters(self) -> None:
        flavor = self.flavor("two", PINNED, vcpus=2)
        servers = self.fill(flavor, 4, az="nova:two")
        assert {self.host_of(one) for one in servers[:-1]} == {"two"}
        self.empty(servers)

    def test_a_request_for_more_servers_than_fit(self) -> None:
        """All of a request fail, and nothing is left of those that had found room."""
        self.empty(self.boot_many(self.flavor("two", PINNED, vcpus=2), 9, "ERROR"))


class TestRestart(Computes):
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Life(self)

    def test_a_server_that_comes_while_the_host_restarts(self) -> None:
        """What was sent to the service waits for it in the queue."""
        self.life.start("one")
        flavor = self.flavor("unequal", PINNED | ONE_AND_THREE, vcpus=4)
        body = self._build_server(flavor_id=flavor, networks="none")
        with mock.patch.object(rpcapi.ComputeAPI, "build_and_run_instance") as waiting:
            self.server = self.api.post_server({"server": body})
        self.restart("one")
        args, kwargs = waiting.call_args
        rpcapi.ComputeAPI().build_and_run_instance(*args, **kwargs)
        self._wait_for_state_change(self.server, "ACTIVE")
        self.life.is_on("one")
        self.restart("one")
        self.life.is_on("one")
        self.life.end()


class TestDelete(Computes):
    """A server is deleted while it moves."""

    kind = PINNING
    disk_gb = 1
    reporting_nodes: bool | None = True

    def setUp(self) -> None:
        super().setUp()
        self.life = Life(self)
        self.life.start("one", self.reporting_nodes)
        flavor = self.flavor("two", PINNED | TWO, vcpus=2, disk_gb=self.disk_gb)
        self.narrow = flavor
        self.server = self.boot(flavor)
        self.life.start("two", self.reporting_nodes)
        self.wide = self.flavor("wide", PINNED | ONE_AND_THREE, vcpus=4, disk_gb=self.disk_gb)

    def test_an_unconfirmed_resize(self) -> None:
        self._resize_server(self.server, self.wide)
        assert self.host_of(self.server) == "two"
        self.life.end()

    def test_a_resize_under_way(self) -> None:
        for call in ("prep_resize", "resize_instance", "finish_resize"):
            self.delete_before(call)
            self.server = self.boot(self.narrow, host="one")
        self.life.end()

    def delete_before(self, call: str) -> None:
        """Delete the server before a service hears of the next step of its resize.

        What the migration holds stays until an audit, on hosts of any kind.
        """
        with mock.patch.object(rpcapi.ComputeAPI, call) as waiting:
            self.api.post_server_action(self.server["id"], {"resize": {"flavorRef": self.wide}})
            self._wait_for_assert(waiting.assert_called)
        migration = self.migration_of(self.server["id"])
        self._delete_server(self.server)
        allocations = self.placement.get(f"/allocations/{self.server['id']}").body["allocations"]
        assert allocations == {}
        assert {name for name in self.life.used() if name.startswith("two")} == set()
        args, kwargs = waiting.call_args
        with contextlib.suppress(exception.InstanceNotFound):
            getattr(rpcapi.ComputeAPI(), call)(*args, **kwargs)
        is_left = bool(self.life.used())
        found = manage.PlacementCommands().audit(delete=True)
        assert found == (4 if is_left else 0)  # 4: it found something, and deleted it
        if is_left and not self.disk_gb and self.reporting_nodes:
            # The audit sees only classes of Nova, and a provider without any is left as it is.
            assert self.life.used() == {"one": {ANCHOR: 1}}
            # Nova gives the source back to the server, though the server is deleted.
            for consumer in (migration, self.server["id"]):
                self.placement.delete(f"/allocations/{consumer}")
        assert self.life.used() == {}

    def test_an_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two", expected_state="ACTIVE")
        self._delete_server(self.server)
        self.life.is_back("one")
        assert self.life.used() == {}


class TestDeleteWithoutDisk(TestDelete):
    disk_gb = 0


class TestDeleteOnOldHosts(TestDelete):
    """As Nova itself has it."""

    reporting_nodes = None
