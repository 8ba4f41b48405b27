"""Guests of all shapes: they boot, move and end, and all agree on where they are."""

from collections.abc import Mapping
from typing import Any, ClassVar

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests import draws
from tests.nova.computes import MULTIPLIER, SHARES, Computes
from tests.nova.numa.agreement import cells_of
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import (
    GIB_KB,
    ONE_AND_THREE,
    PAGES_KB,
    PINNED,
    PINNING,
    TWO,
    page_sizes,
    pinning_kind,
)

Specs = Mapping[str, str]


def unequal(*nodes: tuple[str, int]) -> dict[str, str]:
    """Return the extra specs of nodes with these CPUs and so many MiB."""
    specs = {"hw:numa_nodes": str(len(nodes))}
    for number, (cpus, memory_mb) in enumerate(nodes):
        specs |= {f"hw:numa_cpus.{number}": cpus, f"hw:numa_mem.{number}": str(memory_mb)}
    return specs


class Shapes(LibvirtMigrationMixin, Computes):
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Life(self)

    def move(self, *specs: Specs, vcpus: int) -> None:
        """Boot a server of each flavor, move it to the other host and end it."""
        for one in specs:
            number = len(self.api.get_flavors())
            flavor = self.flavor(f"flavor {number}", one, vcpus=vcpus, disk_gb=number % 2)
            self.server = self.boot(flavor)
            source = self.host_of(self.server)
            self.life.is_on(source)
            (other,) = self.computes.keys() - {source}
            self.life.live_migrate(source, other)
            self.life.is_on(other)
            self._migrate_server(self.server)
            self._confirm_resize(self.server)
            self.life.is_on(source)
            self.life.end()


class TestFourNodes(Shapes):
    """Hosts of four nodes, each with one shared CPU and two dedicated ones."""

    kind = pinning_kind(nodes=4, cores=3, shared="0,3,6,9", dedicated="1-2,4-5,7-8,10-11")

    def test_three_and_four_nodes(self) -> None:
        self.life.start("one")
        self.life.start("two")
        three = unequal(("0", 64), ("1,2", 192), ("3", 256))
        shared = unequal(("0", 64), ("2", 192), ("1", 256))
        four = unequal(("0", 64), ("1", 64), ("2,3", 128), ("4", 256))
        mixed = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0,2"}
        lives = [(PINNED | three, 4), (shared, 3), (PINNED | four, 5), (mixed | four, 5)]
        for specs, vcpus in draws.in_turn(lives):  # Placement takes long for so many nodes
            self.move(specs, vcpus=vcpus)


class TestEmulatorThreads(Shapes):
    extends_cpu_policies = True

    def test_isolated(self) -> None:
        self.life.start("one")
        self.life.start("two")
        isolated = {"hw:cpu_emulator_threads": "isolate"}
        mixed = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0,^3"}
        self.move(PINNED | ONE_AND_THREE | isolated, mixed | TWO | isolated, vcpus=4)

    def test_room_for_the_emulator_threads_is_on_the_first_node(self) -> None:
        """Four dedicated CPUs for three vCPUs and the threads, then four for four vCPUs."""
        self.life.start("one")
        isolated = PINNED | {"hw:cpu_emulator_threads": "isolate"}
        nodes = unequal(("0-2", 256), ("3-6", 256))
        self.server = self.boot(self.flavor("full", isolated | nodes, vcpus=7))
        self.life.is_on("one")
        assert all(cell.avail_pcpus == 0 for cell in cells_of("one").values())
        self.life.end()
        nodes = unequal(("0-3", 256), ("4-6", 256))
        self.server = self.boot(self.flavor("over", isolated | nodes, vcpus=7), state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.life.end()


class TestTooManyNodes(Shapes):
    def test_more_than_a_host_has(self) -> None:
        self.life.start("one")
        three = unequal(("0", 128), ("1", 128), ("2", 256))
        self.server = self.boot(self.flavor("three", three, vcpus=3), state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.life.end()


class TestPages(Shapes):
    """Each node has 1 GiB in each of three page sizes."""

    kind = pinning_kind(pages_kb=(*PAGES_KB, GIB_KB))

    def gib(self, nodes: int, size: str) -> str:
        """Make a flavor with 1 GiB in each node; return its id."""
        flavor: str = self._create_flavor(
            name=f"{nodes} x {size}",
            vcpu=nodes,
            memory_mb=nodes * 1024,
            disk=0,
            ephemeral=0,
            extra_spec={"hw:numa_nodes": str(nodes), "hw:mem_page_size": size},
        )
        return flavor

    def test_each_size(self) -> None:
        self.life.start("one")
        self.life.start("two")
        sizes = {"1GB": GIB_KB, "2MB": 2048, "small": 4, "large": GIB_KB, "any": GIB_KB}
        for asked, size_kb in draws.in_turn(list(sizes.items())):
            self.server = self.boot(self.gib(2, asked), host="one")
            self.life.is_on("one")
            assert page_sizes(self.server["id"]) == [size_kb] * 2
            self.life.live_migrate("one", "two")
            self.life.is_on("two")
            assert page_sizes(self.server["id"]) == [size_kb] * 2
            self._migrate_server(self.server)
            self._confirm_resize(self.server)
            self.life.is_on("one")
            self.life.end()

    def test_large_pages_until_no_pages_are_left(self) -> None:
        """Of large pages there are 4 GiB, 1 GiB on each node in each of two sizes."""
        self.life.start("one")
        flavor = self.gib(1, "large")
        servers = [self.boot(flavor) for _ in range(4)]
        for self.server in servers:
            self.life.is_on("one")
        failed = self.boot(flavor, state="ERROR")
        assert "No valid host was found" in self.fault_of(failed)
        for one in (*servers, failed):
            self._delete_server(one)
        assert self.life.used() == {}


class TestTiers(Shapes):
    """Nodes of 200 shares, 100 for each of two shared CPUs; guests get those of their vCPUs."""

    scheduler_options: ClassVar[Mapping[str, Any]] = {
        "query_placement_for_vcpu_shares": True,
        "query_placement_for_numa": True,
    }

    def shares(self) -> list[int]:
        """Return what the server holds of shares, in order of the nodes."""
        held = self.placement.get(f"/allocations/{self.server['id']}").body["allocations"]
        return sorted(
            body["resources"][SHARES] for body in held.values() if SHARES in body["resources"]
        )

    def test_life(self) -> None:
        self.flags(initial_cpu_allocation_ratio=4.0)
        self.life.start("one")
        self.life.start("two")
        gold = {MULTIPLIER: "50", **unequal(("0", 128), ("1,2", 384))}
        self.server = self.boot(self.flavor("gold", gold, vcpus=3, disk_gb=1), host="one")
        for host in ("one", "two", "one"):
            if host != self.host_of(self.server):
                self._migrate_server(self.server)
                self._confirm_resize(self.server)
            self.life.is_on(host)
            assert self.shares() == [50, 100]  # 1 and 2 vCPUs
            assert self.domain_shares(self.server["id"], host) == "150"
        self.life.live_migrate("one", "two")
        self.life.is_on("two")
        silver = {MULTIPLIER: "10", "hw:numa_nodes": "1"}
        self._resize_server(self.server, self.flavor("silver", silver, vcpus=2, disk_gb=1))
        self._confirm_resize(self.server)
        self.life.is_on("one")
        assert self.shares() == [20]
        assert self.domain_shares(self.server["id"], "one") == "20"
        self.life.end()

    def test_more_shares_than_a_node_has(self) -> None:
        """A node has 2 CPUs x 100 x 1.0 = 200 shares, and each vCPU is to have 101."""
        self.flags(initial_cpu_allocation_ratio=1.0)
        self.life.start("one")
        dear = {MULTIPLIER: "101", "hw:numa_nodes": "1"}
        self.server = self.boot(self.flavor("dear", dear, vcpus=2), state="ERROR")
        assert "No valid host was found" in self.fault_of(self.server)
        self.life.end()
        self.server = self.boot(self.flavor("fair", dear | TWO, vcpus=2))
        self.life.is_on("one")
        assert self.shares() == [101, 101]
        self.life.end()


class TestSharedDisk(Shapes):
    """Hosts that share a pool of disks, and have only a GiB on a disk of their own."""

    def setUp(self) -> None:
        super().setUp()
        local = {"total": 1, "used": 0, "free": 1}
        name = "nova.virt.libvirt.driver.LibvirtDriver._get_local_gb_info"
        self.useFixture(fixtures.MonkeyPatch(name, staticmethod(lambda: local)))
        uuids = [self.life.start(name) for name in ("one", "two")]
        pool = self._post_resource_provider("pool")["uuid"]
        disk = {"DISK_GB": {"total": 100, "max_unit": 100}}
        self._update_inventory(pool, {"resource_provider_generation": 0, "inventories": disk})
        self._set_provider_traits(pool, ["MISC_SHARES_VIA_AGGREGATE"])
        for uuid in (pool, *uuids):
            self._set_aggregate(uuid, uuids[0])  # any uuid is the name of an aggregate

    def test_nodes(self) -> None:
        flavor = self.flavor("nodes", TWO, vcpus=2, disk_gb=2)
        self.server = self.boot(flavor)
        assert self.life.holds()["pool"] == {"DISK_GB": 2}
        source = self.host_of(self.server)
        self.life.is_on(source)
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.life.is_on(*{"one", "two"} - {source})
        assert self.life.holds()["pool"] == {"DISK_GB": 2}
        self.life.end()
