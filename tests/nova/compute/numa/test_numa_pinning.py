"""Servers are pinned on what Placement allocated, however they came to a host."""

from typing import Any
from unittest import mock

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.guest.cell_places import NotAllocated, allocated_places
from tests.nova.computes import Computes
from tests.nova.faults import placement_away
from tests.nova.numa.agreement import cells_of, check_agreement, held_of_nodes, topology_of
from tests.nova.numa.pinning import (
    IMAGE,
    ONE_AND_THREE,
    PINNED,
    PINNING,
    TWO,
    NumaComputes,
    page_sizes,
    pinning_kind,
)


class TestBoot(NumaComputes):
    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")

    def booted(self, specs: dict[str, str], *, vcpus: int) -> str:
        flavor = self.flavor(f"flavor {len(self.api.get_flavors())}", specs, vcpus=vcpus)
        uuid: str = self.boot(flavor)["id"]
        return uuid

    def test_shared(self) -> None:
        assert len(self.where(self.booted({"hw:numa_nodes": "1"}, vcpus=2))) == 1
        assert len(self.where(self.booted(TWO, vcpus=2))) == 2
        assert len(self.where(self.booted(TWO, vcpus=4))) == 2

    def test_pinned(self) -> None:
        one = self.where(self.booted(PINNED, vcpus=3))
        other = self.where(self.booted(PINNED, vcpus=3))
        assert {*one, *other} == {("one", 0), ("one", 1)}
        assert len(self.where(self.booted(PINNED | TWO, vcpus=2))) == 2

    def test_unequal_nodes_fit_in_a_single_order(self) -> None:
        """Three CPUs of one node are taken, so the node with three vCPUs is the other."""
        ((_, taken),) = self.where(self.booted(PINNED, vcpus=3))
        found = self.where(self.booted(PINNED | ONE_AND_THREE, vcpus=4))
        assert found == [("one", taken), ("one", 1 - taken)]

    def test_mixed(self) -> None:
        mixed = {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0"}
        self.where(self.booted(mixed, vcpus=3))
        both = {**TWO, **mixed, "hw:cpu_dedicated_mask": "^0,^3"}
        assert len(self.where(self.booted(both, vcpus=6))) == 2

    def test_isolated_emulator_threads(self) -> None:
        isolated = PINNED | {"hw:emulator_threads_policy": "isolate"}
        found = self.where(self.booted(isolated | ONE_AND_THREE, vcpus=4))
        assert len(found) == 2
        assert len(self.where(self.booted(isolated, vcpus=1))) == 1

    def test_page_sizes(self) -> None:
        expected = {
            "2MB": [2048, 2048],  # and 768 MiB are left of the large pages of each node
            "large": [2048, 2048],
            "small": [4, 4],
        }
        for asked, sizes in expected.items():
            server = self.booted(PINNED | TWO | {"hw:mem_page_size": asked}, vcpus=2)
            assert len(self.where(server)) == 2
            assert page_sizes(server) == sizes
        assert self.where(self.booted({"hw:mem_page_size": "any"}, vcpus=1))

    def test_any_pages_until_no_pages_are_left(self) -> None:
        """Four servers of 512 MiB per node; Nova alone would not leave the large pages."""
        flavor = self.flavor("any", {"hw:mem_page_size": "any"})
        servers = [self.boot(flavor)["id"] for _ in range(4)]
        assert {tuple(self.where(server)) for server in servers} <= {
            (("one", 0),),
            (("one", 1),),
        }

    def boot_many(self, flavor: str, count: int) -> list[str]:
        """Boot servers in one request."""
        body = self._build_server(flavor_id=flavor, networks="none")
        self.api.post_server({"server": {**body, "min_count": count, "max_count": count}})
        servers = self.api.get_servers(detail=False)
        assert len(servers) == count
        return [self._wait_for_state_change(one, "ACTIVE")["id"] for one in servers]

    def test_many_at_once_until_the_host_is_full(self) -> None:
        flavor = self.flavor("two", PINNED, vcpus=2)
        found = [cell for one in self.boot_many(flavor, 4) for _, cell in self.where(one)]
        assert sorted(found) == [0, 0, 1, 1]
        assert all(cell.avail_pcpus == 0 for cell in cells_of("one").values())
        failed = self.boot(flavor, state="ERROR")
        assert "No valid host" in self.fault_of(failed)

    def test_many_at_once_over_both_nodes(self) -> None:
        for server in self.boot_many(self.flavor("two", PINNED | TWO, vcpus=4), 2):
            assert len(self.where(server)) == 2
        assert all(cell.avail_pcpus == 0 for cell in cells_of("one").values())

    def test_resize_on_the_same_host(self) -> None:
        self.flags(allow_resize_to_same_host=True)
        server = self.boot(self.flavor("narrow", PINNED, vcpus=2, disk_gb=1))
        before = self.where(server["id"]), topology_of(server["id"]).obj_to_primitive()
        wide = self.flavor("wide", PINNED | ONE_AND_THREE, vcpus=4, disk_gb=1)
        self._resize_server(server, wide)
        assert len(self.where(server["id"])) == 2
        assert list(held_of_nodes(self, self.migration_of(server["id"]))) == before[0]
        self._revert_resize(server)
        assert self.where(server["id"]) == before[0]
        assert topology_of(server["id"]).obj_to_primitive() == before[1]
        self._resize_server(server, wide)
        self._confirm_resize(server)
        assert len(self.where(server["id"])) == 2

    def test_shelve_and_unshelve(self) -> None:
        flavor = self.flavor("any", TWO | {"hw:mem_page_size": "any"}, vcpus=2)
        server = self.boot(flavor)
        self.where(server["id"])
        self._shelve_server(server)
        assert held_of_nodes(self, server["id"]) == {}
        self._unshelve_server(server)
        self.where(server["id"])

    def test_rebuild(self) -> None:
        server = self.booted(PINNED | ONE_AND_THREE, vcpus=4)
        before = self.where(server), topology_of(server).obj_to_primitive()
        self._rebuild_server({"id": server}, IMAGE)
        assert (self.where(server), topology_of(server).obj_to_primitive()) == before


class TestFourNodes(NumaComputes):
    kind = pinning_kind(nodes=4, cores=3, shared="0,3,6,9", dedicated="1-2,4-5,7-8,10-11")

    def test_boot(self) -> None:
        self.start_host("one")
        four = {"hw:numa_nodes": "4", **PINNED}
        server = self.boot(self.flavor("four", four, vcpus=4))["id"]
        assert {cell for _, cell in self.where(server)} == {0, 1, 2, 3}
        self.where(self.boot(self.flavor("two", PINNED | {"hw:numa_nodes": "2"}, vcpus=2))["id"])


class TestRetry(NumaComputes):
    def test_a_claim_that_is_refused_is_tried_on_another_host(self) -> None:
        """The alternate has an allocation of its own, and that counts there."""
        self.start_host("one")
        self.start_host("two")
        refused: list[str] = []

        def places(guest: Any, host: str, held: Any) -> Any:
            if not refused:
                refused.append(host)
                raise NotAllocated("no")
            return allocated_places(guest, host, held)

        with mock.patch("cpu_tiers.nova.compute.numa.numa_pinning.allocated_places", places):
            server = self.boot(self.flavor("unequal", PINNED | ONE_AND_THREE, vcpus=4))["id"]
        (first,) = refused
        assert {host for host, _ in self.where(server)} == {"one", "two"} - {first}
        assert all(not cell.pinned_cpus for cell in cells_of(first).values())

    def test_a_host_that_missed_the_report_at_the_start_gets_no_server(self) -> None:
        self.start_host("one")
        with placement_away():
            self.restart("one")
        flavor = self.flavor("two", TWO, vcpus=2)
        refused = self.boot(flavor, state="ERROR")
        assert "Exhausted all hosts available for retrying" in self.fault_of(refused)
        assert held_of_nodes(self, refused["id"]) == {}
        self._run_periodics()
        assert len(self.where(self.boot(flavor)["id"])) == 2


class TestUpgrade(NumaComputes):
    def test_hosts_that_do_not_report_numa_nodes(self) -> None:
        self.flags(group="compute", enable_numa_reporting_to_placement=None)
        self.start_host("old")
        unequal = self.flavor("unequal", PINNED | ONE_AND_THREE, vcpus=4, disk_gb=1)
        server = self.boot(unequal)
        pins = topology_of(server["id"]).obj_to_primitive()
        assert held_of_nodes(self, server["id"]) == {}

        self.flags(group="compute", enable_numa_reporting_to_placement=True)
        self.start_host("new")
        self._migrate_server(server)
        assert {host for host, _ in self.where(server["id"])} == {"new"}
        self._revert_resize(server)
        assert topology_of(server["id"]).obj_to_primitive() == pins
        assert held_of_nodes(self, server["id"]) == {}

        self.restart("old")
        assert {host for host, _ in self.where(server["id"])} == {"old"}
        assert topology_of(server["id"]).obj_to_primitive() == pins


class Moves(Computes):
    """Two hosts, and a server in two nodes of the first; one of those has three CPUs taken."""

    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")
        self.boot(self.flavor("three", PINNED, vcpus=3))
        unequal = self.flavor("unequal", PINNED | ONE_AND_THREE, vcpus=4, disk_gb=1)
        self.server = self.boot(unequal)
        self.before = self.where(self.server["id"])
        self.start_host("two")


class TestAway(Moves):
    def test_cold_migration(self) -> None:
        pins = topology_of(self.server["id"]).obj_to_primitive()
        self._migrate_server(self.server)
        assert {host for host, _ in self.where(self.server["id"])} == {"two"}
        held = held_of_nodes(self, self.migration_of(self.server["id"]))
        assert held.keys() == set(self.before)
        self._revert_resize(self.server)
        assert self.where(self.server["id"]) == self.before
        assert topology_of(self.server["id"]).obj_to_primitive() == pins
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        assert {host for host, _ in self.where(self.server["id"])} == {"two"}

    def test_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two", expected_state="ACTIVE")
        found = check_agreement(self, self.server["id"], others=True)
        assert {host for host, _ in found} == {"two"}
        # Nova keeps what is on the dead host until that comes back.
        assert held_of_nodes(self, self.server["id"]).keys() == {*self.before, *found}


class TestLiveMigration(LibvirtMigrationMixin, Moves):
    def test_a_live_migration_and_the_way_back(self) -> None:
        one, two = self.computes["one"], self.computes["two"]
        self.boot_on("two", self.flavor("other", PINNED, vcpus=2))
        for self.src, self.dest, name in ((one, two, "two"), (two, one, "one")):
            self._live_migrate(self.server)
            assert {host for host, _ in self.where(self.server["id"])} == {name}
