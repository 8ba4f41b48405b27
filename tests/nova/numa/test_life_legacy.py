"""Servers that go from hosts that report their nodes to hosts that do not, and back.

``one`` reports its nodes, ``old`` does not, ``never`` refuses servers with a NUMA
topology.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from tests.nova.compute.test_numa_pinning import IMAGE, ONE_AND_THREE, PINNED, TWO
from tests.nova.numa.agreement import held_of_nodes, topology_of
from tests.nova.numa.lives import Lives


class Kinds(Lives):
    """The server of a test starts on one; later there are old and never."""

    specs: ClassVar[Mapping[str, str]] = {**PINNED, **ONE_AND_THREE}
    disk_gb = 1

    def setUp(self) -> None:
        super().setUp()
        self.start("one")
        self.aware = self.flavor("aware", self.specs, vcpus=4, disk_gb=self.disk_gb)
        self.plain = self.flavor("plain", disk_gb=self.disk_gb)
        self.server = self.boot(self.aware)
        self.is_on("one")
        self.start("old", reporting=None)
        self.start("never", reporting=False)

    def available(self, host: str, status: str) -> None:
        service = self.api.get_services(host=host, binary="nova-compute")[0]
        self.api.put_service(service["id"], {"status": status})

    def holds(self) -> dict[str, dict[str, int]]:
        """Return what the server holds, by the name of the provider."""
        found = self.placement.get("/resource_providers").body["resource_providers"]
        names = {one["uuid"]: one["name"] for one in found}
        held = self.placement.get(f"/allocations/{self.server['id']}").body["allocations"]
        return {names[uuid]: body["resources"] for uuid, body in held.items()}


class TestThereAndBack(Kinds):
    def test_cold_migration(self) -> None:
        pins = topology_of(self.server["id"]).obj_to_primitive()
        self._migrate_server(self.server)
        self.is_on_root("old", others=True)
        self._revert_resize(self.server)
        self.is_on("one")
        assert topology_of(self.server["id"]).obj_to_primitive() == pins
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.is_on_root("old")
        self._migrate_server(self.server)
        self.is_on("one", others=True)
        self._revert_resize(self.server)
        self.is_on_root("old")
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.is_on("one")
        self.end()

    def test_live_migration(self) -> None:
        self.live_migrate("one", "old")
        self.is_on_root("old")
        self.live_migrate("old", "one")
        self.is_on("one")
        self.end()

    def test_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="old", expected_state="ACTIVE")
        self.is_on_root("old", others=True)
        self.is_back("one")
        self.is_on_root("old")
        self.go_down("old")
        self._evacuate_server(self.server, expected_host="one", expected_state="ACTIVE")
        self.is_on("one", others=True)
        self.is_back("old")
        self.is_on("one")
        self.end()

    def test_shelve_and_rebuild(self) -> None:
        self._shelve_server(self.server)
        assert self.used() == {}
        self.available("one", "disabled")
        self._unshelve_server(self.server)
        self.is_on_root("old")
        self._rebuild_server(self.server, IMAGE)
        self.is_on_root("old")
        self._shelve_server(self.server)
        assert self.used() == {}
        self.available("one", "enabled")
        self.available("old", "disabled")
        self._unshelve_server(self.server)
        self.is_on("one")
        self.end()


class TestWithoutDisk(TestThereAndBack):
    """Nothing is held of the root of one, and all of the root of old."""

    specs: ClassVar[Mapping[str, str]] = {**TWO, "hw:mem_page_size": "2MB"}
    disk_gb = 0


class TestResize(Kinds):
    def test_to_a_flavor_without_nodes_and_back(self) -> None:
        self.available("old", "disabled")
        self._resize_server(self.server, self.plain)
        assert self.host_of(self.server) == "never"
        self._revert_resize(self.server)
        self.is_on("one")
        self._resize_server(self.server, self.plain)
        self._confirm_resize(self.server)
        assert self.holds() == {"never": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
        assert self.used().keys() == {"never"}

        self._resize_server(self.server, self.aware)
        self.is_on("one", others=True)
        self._revert_resize(self.server)
        assert self.holds() == {"never": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
        self._resize_server(self.server, self.aware)
        self._confirm_resize(self.server)
        self.is_on("one")
        self.end()

    def test_to_more_nodes_on_the_other_kind(self) -> None:
        mixed = {**TWO, "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0,^3"}
        flavor = self.flavor("mixed", mixed, vcpus=6, disk_gb=1)
        self._resize_server(self.server, flavor)
        self.is_on_root("old", others=True)
        self._confirm_resize(self.server)
        self.is_on_root("old")
        self._resize_server(self.server, self.aware)
        self._confirm_resize(self.server)
        self.is_on("one")
        self.end()


class TestWrongKind(Kinds):
    """A host of the wrong kind is refused, in whatever way it is asked for."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def boot_in_vain(self, flavor: str, host: str) -> None:
        """Ask for a host by name, by its node, and past all filters."""
        node = {"hypervisor_hostname": host}
        for number, asked in enumerate(({"host": host}, node, {"az": f"nova:{host}"})):
            body = self._build_server(flavor_id=flavor, networks="none")
            body |= {"availability_zone": asked.pop("az")} if "az" in asked else asked
            server = self.api.post_server({"server": body})
            server = self._wait_for_state_change(server, "ERROR")
            assert "No valid host was found" in self.fault_of(server), number
            self._delete_server(server)

    def test_boot(self) -> None:
        self._delete_server(self.server)
        self.boot_in_vain(self.plain, "one")
        self.boot_in_vain(self.aware, "never")
        assert self.used() == {}
        for host in ("one", "old"):  # past all filters, but not past Placement
            self.server = self.boot(self.aware, az=f"nova:{host}")
            self.is_on("one") if host == "one" else self.is_on_root("old")
            self.end()

    def moves_in_vain(self, host: str) -> None:
        before = self.holds()
        cold = {"migrate": {"host": host}}
        assert "No valid host" in self.fails(cold, "migrate", "conductor_migrate_server")
        live = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
        self.api.post_server_action(self.server["id"], live)
        self._wait_for_migration_status(self.server, ["error"])
        self._wait_for_state_change(self.server, "ACTIVE")
        assert self.holds() == before

    def test_moves(self) -> None:
        self.moves_in_vain("never")
        self.is_on("one")
        self.end()
        self.server = self.boot(self.plain, host="old")
        self.moves_in_vain("one")
        self.end()

    def test_no_host_is_left(self) -> None:
        self.available("old", "disabled")
        self.moves_in_vain("never")
        self._shelve_server(self.server)
        self.available("one", "disabled")
        self.api.post_server_action(self.server["id"], {"unshelve": None})
        self._wait_for_action_fail_completion(self.server, "unshelve", "schedule_instances")
        assert held_of_nodes(self, self.server["id"]) == {}
        self.end()

    def test_evacuation(self) -> None:
        self.available("old", "disabled")
        self.go_down("one")
        before = self.holds()
        action: dict[str, Any] = {"evacuate": {}}
        self.api.post_server_action(self.server["id"], action)
        self._wait_for_action_fail_completion(self.server, "evacuate", "rebuild_server")
        assert self.holds() == before
        self.is_back("one")
        self.is_on("one")
