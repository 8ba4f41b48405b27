"""Servers that run before their host reports its NUMA nodes, in Nova's own services.

Hosts have two nodes of 4 CPUs and 8192 MiB. Guests are booted one after the
other: Nova puts a guest with nodes on those that are the most free.
"""

from collections.abc import Callable
from typing import Any
from unittest import mock

from nova import context, exception, objects
from nova.tests.fixtures import libvirt as fakelibvirt

from cpu_tiers.model.numa import NODE_TRAIT
from tests.nova.computes import MULTIPLIER, OURS, Computes
from tests.nova.faults import placement_away
from tests.nova.numa.hosts import NODES, ROOT, SHARES
from tests.nova.provider_tree import ANCHOR, ANCHORS
from tests.nova.reshapes import (
    CLIENT,
    POWER_OFF,
    RESHAPE,
    RPC,
    count_reshapes,
    live_migrate_from_one,
)

PINNED = {"hw:cpu_policy": "dedicated"}
TWO_NODES = {"hw:numa_nodes": "2"}


class Moves(Computes):
    kind = NODES

    def switch(self, *hosts: str) -> int:
        """Restart hosts that are to report their nodes; return how often Placement reshaped."""
        self.nodes(True)
        return count_reshapes(self, *hosts)

    def cells(self, server: str) -> list[int]:
        """Return the host cells of a guest, by Nova."""
        found = objects.Instance.get_by_uuid(
            context.get_admin_context(), server, expected_attrs=["numa_topology"]
        )
        return [cell.id for cell in found.numa_topology.cells]

    def on_node(self, cell: int, memory_mb: int = 512, size_kb: int = 4, **cpus: int) -> Any:
        """Return what a server holds of one node of the host ``one``."""
        pages = f"one_NUMA{cell}_PAGES_{size_kb}"
        return {f"one_NUMA{cell}": cpus, pages: {"MEMORY_MB": memory_mb}}


class TestAtRest(Moves):
    def test_servers_of_all_kinds(self) -> None:
        self.flags(cpu_shared_set="0-2,4-6", cpu_dedicated_set="3,7", group="compute")
        sizes = [(4, 1835008), (2048, 512)]  # 7 GiB and 1 GiB
        pages = [fakelibvirt.create_mempages(sizes) for _ in range(2)]
        self.start_host("one", mempages=pages)
        pinned = self.boot_on("one", self.flavor("pinned", PINNED))
        huge = self.boot_on("one", self.flavor("huge", {"hw:mem_page_size": "2048"}))
        mixed = self.flavor(
            "mixed", {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}, vcpus=2
        )
        mixed = self.boot_on("one", mixed)
        uneven = {
            **TWO_NODES,
            "hw:numa_cpus.0": "0",
            "hw:numa_mem.0": "128",
            "hw:numa_cpus.1": "1",
            "hw:numa_mem.1": "384",
        }
        wide = self.boot_on("one", self.flavor("wide", uneven, vcpus=2))
        disk = self.boot_on("one", self._create_flavor(vcpu=1, memory_mb=512, disk=10))
        assert self.switch("one") == 1
        (cell,) = self.cells(pinned)
        assert self.held(pinned) == self.on_node(cell, PCPU=1)
        (cell,) = self.cells(huge)
        assert self.held(huge) == self.on_node(cell, size_kb=2048, VCPU=1)
        (cell,) = self.cells(mixed)
        assert self.held(mixed) == self.on_node(cell, VCPU=1, PCPU=1)
        first, second = self.cells(wide)
        assert self.held(wide) == {
            **self.on_node(first, memory_mb=128, VCPU=1),
            **self.on_node(second, memory_mb=384, VCPU=1),
        }
        held = self.held(disk)
        assert held.pop("one") == {"DISK_GB": 20}  # 10 and as much ephemeral
        assert held in (self.on_node(0, VCPU=1), self.on_node(1, VCPU=1))
        assert self.tree.totals("one")["one"] == {"DISK_GB": 128, ANCHOR: ANCHORS}
        before = self.tree.generations("one")
        assert count_reshapes(self, "one") == 0
        self._run_periodics()
        assert self.tree.generations("one") == before

    def test_servers_without_nodes_are_arranged_until_all_servers_fit(self) -> None:
        self.start_host("one")
        servers = [
            self.boot_on("one", self.flavor(f"f{number}", vcpus=vcpus))
            for number, vcpus in enumerate((2, 3, 1, 2))
        ]
        assert self.switch("one") == 1
        # 8 CPUs: 3 + 1 on one node, 2 + 2 on the other
        places = [min(self.held(server)) for server in servers]
        assert places[0] == places[3] != places[1] == places[2]

    def test_an_empty_host_just_reports(self) -> None:
        self.start_host("one")
        assert self.switch("one") == 0
        assert self.tree.totals("one")["one"] == {"DISK_GB": 128, ANCHOR: ANCHORS}

    def test_a_consumer_that_nova_does_not_know_moves_too(self) -> None:
        one = self.start_host("one")
        stranger = self.tree.claim({one: {"VCPU": 1, "MEMORY_MB": 64}})
        assert self.switch("one") == 1
        assert self.held(stranger) == self.on_node(0, memory_mb=64, VCPU=1)

    def test_novas_own_driver_on_a_host_with_servers(self) -> None:
        """It would promise the CPUs of the nodes on the root, too: the anchor forbids it."""
        self.start_host("one")
        first = self.boot_on("one", self.flavor("first", vcpus=3))
        assert self.switch("one") == 1
        before = self.tree.inventories("one")
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.restart_refused("one", exception.NovaException)
        self.flags(compute_driver=OURS)
        assert count_reshapes(self, "one") == 0
        assert self.tree.inventories("one") == before
        assert self.held(first) == self.on_node(0, VCPU=3)

    def test_claims_while_the_driver_of_nova_ran(self) -> None:
        self.nodes(True)
        self.start_host("one")
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.restart("one")
        # beside the nodes
        assert self.tree.totals("one")["one"] == {"DISK_GB": 128, **ROOT}
        claimed = self.tree.claim({self.compute_rp_uuids["one"]: {"VCPU": 2, "MEMORY_MB": 64}})
        self.flags(compute_driver=OURS)
        assert count_reshapes(self, "one") == 1
        assert self.held(claimed) == self.on_node(0, memory_mb=64, VCPU=2)
        assert self.tree.totals("one")["one"] == {"DISK_GB": 128, ANCHOR: ANCHORS}


class TestDoesNotFit(Moves):
    def test_each_server_is_named_and_nothing_is_changed(self) -> None:
        self.start_host("one")
        small = self.boot_on("one", self.flavor("small"))
        large = self.boot_on("one", self.flavor("large", vcpus=5))
        self.nodes(True)
        message = self.restart_refused("one")
        assert f"({large}), flavor large: holds 512 MEMORY_MB, 5 VCPU" in message
        assert "one server may have at most 4" in message
        assert "Nothing was changed. Or start one without [compute]" in message
        assert small not in message
        assert self.tree.totals("one") == {"one": {"DISK_GB": 128, **ROOT}}
        assert self.held(large) == {"one": {"VCPU": 5, "MEMORY_MB": 512}}
        self.nodes(None)  # the way back that the message names
        self.restart("one")
        self.api.delete_server(large)  # and the way on
        self._wait_until_deleted({"id": large})
        assert self.switch("one") == 1
        assert "one" not in self.held(small)


class TestShares(Moves):
    def test_shares_and_nodes_in_a_single_restart(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        wide = self.boot_on("one", self.flavor("wide", {**TWO_NODES, MULTIPLIER: "12.5"}, vcpus=2))
        self.reporting(True)
        assert self.switch("one") == 1
        (gold_node,) = (name for name in self.held(gold) if SHARES in self.held(gold)[name])
        assert self.held(gold)[gold_node] == {"VCPU": 2, SHARES: 200}
        # 12.5 x 2 = 25: 12.5 of each node, and the first takes what is odd
        first, second = self.cells(wide)
        assert self.held(wide) == {
            **self.on_node(first, memory_mb=256, VCPU=1, **{SHARES: 13}),
            **self.on_node(second, memory_mb=256, VCPU=1, **{SHARES: 12}),
        }
        assert count_reshapes(self, "one") == 0

    def test_after_nodes(self) -> None:
        self.start_host("one")
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        wide = self.boot_on("one", self.flavor("wide", {**TWO_NODES, MULTIPLIER: "12.5"}, vcpus=2))
        assert self.switch("one") == 1
        before = self.held(wide)
        self.reporting(True)
        with placement_away():
            self.restart("one")
        self._run_periodics()
        assert self.held(wide) == before
        assert f"one reports {SHARES} after a restart" in self.stdlog.logger.output
        assert count_reshapes(self, "one") == 1
        (shares,) = (r for r in self.held(gold).values() if SHARES in r)
        assert shares == {"VCPU": 2, SHARES: 200}
        found = {name: r[SHARES] for name, r in self.held(wide).items() if SHARES in r}
        assert sorted(found.values()) == [12, 13]
        assert found.keys() == {"one_NUMA0", "one_NUMA1"}
        assert count_reshapes(self, "one") == 0

    def test_a_server_without_room_for_shares_is_named_with_the_node(self) -> None:
        self.start_host("one")
        self.boot_on("one", self.flavor("wide", {**TWO_NODES, MULTIPLIER: "60"}, vcpus=2))
        gold = self.boot_on("one", self.tier("gold", "100", vcpus=2))
        assert self.switch("one") == 1
        (node,) = (name for name in self.held(gold) if not name.endswith("_PAGES_4"))
        self.flags(vcpu_share_multiplier=50, group="libvirt")  # 200 of each node
        self.reporting(True)
        message = self.restart_refused("one")
        # 60 of 200 are the first's
        assert f"({gold}), flavor gold: asks {node} for 200 {SHARES}" in message
        assert "140 of 200 are left" in message
        assert not any(SHARES in records for records in self.tree.totals("one").values())


class TestOnTheWay(Moves):
    """A migration holds the source with the old topology, the server the destination."""

    def start_resize(self, stop: str | None = None) -> tuple[str, str]:
        """Resize a pinned server; return the uuids of server and migration.

        :param stop: the call to a compute that is lost on the way.
        """
        self.flags(cpu_dedicated_set="0-7", group="compute")
        server = self.boot_on("one", self.flavor("small", PINNED, vcpus=2))
        large = self.flavor("large", {**PINNED, **TWO_NODES}, vcpus=4)
        with mock.patch(POWER_OFF, return_value="{}"):
            if stop is None:
                self._resize_server({"id": server}, large)
            else:
                with mock.patch(f"{RPC}.{stop}") as lost:
                    self.api.post_server_action(server, {"resize": {"flavorRef": large}})
                    self._wait_for_assert(lost.assert_called)
        return server, self.migration_of(server)

    def begin(self, *hosts: str) -> None:
        self.flags(cpu_dedicated_set="0-7", group="compute")
        for host in hosts:
            self.start_host(host)

    def expect(self, server: str, migration: str, *, host: str) -> None:
        """Look at both ends of a resize that ends on a host."""
        old = self.held(migration)
        assert sorted(old.values(), key=str) == [{"MEMORY_MB": 512}, {"PCPU": 2}]
        assert all(name.startswith("one_NUMA") for name in old)
        assert self.held(server) == {
            f"{host}_NUMA0": {"PCPU": 2},
            f"{host}_NUMA0_PAGES_4": {"MEMORY_MB": 256},
            f"{host}_NUMA1": {"PCPU": 2},
            f"{host}_NUMA1_PAGES_4": {"MEMORY_MB": 256},
        }

    def test_an_unconfirmed_resize(self) -> None:
        self.begin("one", "two")
        server, migration = self.start_resize()
        assert self.switch("one", "two") == 2
        self.expect(server, migration, host="two")
        assert count_reshapes(self, "one", "two") == 0
        self._revert_resize({"id": server})
        (cell,) = self.cells(server)
        assert self.held(server) == self.on_node(cell, PCPU=2)
        assert self.held(migration) == {}

    def test_a_resize_on_a_single_host(self) -> None:
        self.flags(allow_resize_to_same_host=True)
        self.begin("one")
        server, migration = self.start_resize()
        assert self.switch("one") == 1
        self.expect(server, migration, host="one")
        self._confirm_resize({"id": server})
        assert len(self.held(server)) == 4
        assert self.held(migration) == {}

    def test_a_resize_that_the_destination_has_not_finished(self) -> None:
        self.begin("one", "two")
        server, migration = self.start_resize("finish_resize")
        assert self.switch("one", "two") == 2
        self.expect(server, migration, host="two")

    def test_a_boot_that_the_host_has_not_heard_of(self) -> None:
        self.begin("one")
        full = self.boot_on("one", self.flavor("full", PINNED, vcpus=4))
        with mock.patch(f"{RPC}.build_and_run_instance") as lost:
            flavor = self.flavor("small", PINNED, vcpus=2)
            server = self._build_server(flavor_id=flavor, networks="none", host="one")
            server = self.api.post_server({"server": server})["id"]
            self._wait_for_assert(lost.assert_called)
        assert self.switch("one") == 1
        assert self.cells(full) == [0]
        assert self.held(full) == self.on_node(0, PCPU=4)
        assert self.cells(server) == [0]  # its first one: of the guest, not of the host
        assert self.held(server) == self.on_node(1, PCPU=2)

    def test_a_migration_that_the_destination_has_not_heard_of(self) -> None:
        self.begin("one", "two")
        server = self.boot_on("one", self.flavor("wide", {**PINNED, **TWO_NODES}, vcpus=4))
        with mock.patch(f"{RPC}.prep_resize") as lost:
            self.api.post_server_action(server, {"migrate": None})
            self._wait_for_assert(lost.assert_called)
        assert self.switch("one", "two") == 2
        self.expect_wide(self.migration_of(server), "one")
        self.expect_wide(server, "two")

    def test_an_evacuation(self) -> None:
        self.begin("one", "two")
        server = self.boot_on("one", self.flavor("wide", {**PINNED, **TWO_NODES}, vcpus=4))
        self.go_down("one")
        self._evacuate_server({"id": server}, expected_host="two", expected_state="ACTIVE")
        assert self.switch("two") == 1
        held = self.held(server)
        assert held.pop("one") == {"PCPU": 4, "MEMORY_MB": 512}  # until that comes back
        assert len(held) == 4
        assert self.switch("one") == 0
        self.expect_wide(server, "two")

    def test_a_resize_that_the_destination_has_not_heard_of(self) -> None:
        self.begin("one", "two")
        server, migration = self.start_resize("prep_resize")
        assert self.switch("one", "two") == 2
        assert self.held(server) == {
            "two_NUMA0": {"PCPU": 4},  # nobody tells its new nodes
            "two_NUMA0_PAGES_4": {"MEMORY_MB": 512},
        }
        (cell,) = self.cells(server)
        assert self.held(migration) == self.on_node(cell, PCPU=2)

    def expect_wide(self, consumer: str, host: str) -> None:
        assert self.held(consumer) == {
            f"{host}_NUMA0": {"PCPU": 2},
            f"{host}_NUMA0_PAGES_4": {"MEMORY_MB": 256},
            f"{host}_NUMA1": {"PCPU": 2},
            f"{host}_NUMA1_PAGES_4": {"MEMORY_MB": 256},
        }

    def test_a_live_migration_of_a_server_without_nodes(self) -> None:
        server, migration = live_migrate_from_one(self)
        assert self.switch("one", "two") == 2
        for consumer, host in ((migration, "one"), (server, "two")):
            assert self.held(consumer) == {
                f"{host}_NUMA0": {"VCPU": 2},
                f"{host}_NUMA0_PAGES_4": {"MEMORY_MB": 512},
            }


class Killed(BaseException):
    """The service is gone from one moment to the next: nothing of Nova catches this."""


class TestKilled(Moves):
    def killed(self, reshape: Callable[..., None]) -> str:
        """Kill a compute that reshapes; return its server."""
        self.start_host("one")
        server = self.boot_on("one", self.flavor("f"))
        self.nodes(True)
        with mock.patch.object(CLIENT, "_reshape", reshape):
            self.restart_refused("one", Killed)
        return server

    def finished(self, server: str) -> None:
        assert self.held(server) == self.on_node(0, VCPU=1)
        assert self.tree.totals("one")["one"] == {"DISK_GB": 128, ANCHOR: ANCHORS}
        for cell in (0, 1):
            traits = self.tree.traits("one", f"one_NUMA{cell}")
            assert traits == {NODE_TRAIT, f"CUSTOM_NUMA_CELL_{cell}"}
        assert count_reshapes(self, "one") == 0

    def test_before_the_transaction(self) -> None:
        def killed(*_: Any) -> None:
            raise Killed

        server = self.killed(killed)
        assert self.held(server) == {"one": {"VCPU": 1, "MEMORY_MB": 512}}
        assert count_reshapes(self, "one") == 1
        self.finished(server)

    def test_after_the_transaction(self) -> None:
        def answer_lost(*args: Any) -> None:
            RESHAPE(*args)
            raise Killed

        server = self.killed(answer_lost)
        assert count_reshapes(self, "one") == 0
        self.finished(server)
