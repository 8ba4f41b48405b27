"""Servers that go from hosts that report their nodes to hosts that do not, and back.

``one`` reports its nodes, ``old`` does not, ``never`` refuses servers with a NUMA
topology.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.numa.agreement import held_of_nodes, topology_of
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import IMAGE, ONE_AND_THREE, PINNED, PINNING, TWO

ACROSS = {**PINNED, **ONE_AND_THREE}


class Kinds(Life):
    """The server of a test starts on one; later there are old and never."""

    def __init__(
        self, cloud: Computes, specs: Mapping[str, str] = ACROSS, *, disk_gb: int = 1
    ) -> None:
        super().__init__(cloud)
        self.start("one")
        self.aware = cloud.flavor("aware", specs, vcpus=4, disk_gb=disk_gb)
        self.plain = cloud.flavor("plain", disk_gb=disk_gb)
        cloud.server = cloud.boot(self.aware)
        self.is_on("one")
        self.start("old", reporting=None)
        self.start("never", reporting=False)

    def available(self, host: str, status: str) -> None:
        """Enable or disable the nova-compute of a host."""
        service = self.cloud.api.get_services(host=host, binary="nova-compute")[0]
        self.cloud.api.put_service(service["id"], {"status": status})


class TestThereAndBack(LibvirtMigrationMixin, Computes):
    kind = PINNING
    specs: ClassVar[Mapping[str, str]] = ACROSS
    disk_gb = 1

    def setUp(self) -> None:
        super().setUp()
        self.life = Kinds(self, self.specs, disk_gb=self.disk_gb)

    def test_cold_migration(self) -> None:
        pins = topology_of(self.server["id"]).obj_to_primitive()
        self._migrate_server(self.server)
        self.life.is_on_root("old", others=True)
        self._revert_resize(self.server)
        self.life.is_on("one")
        assert topology_of(self.server["id"]).obj_to_primitive() == pins
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.life.is_on_root("old")
        self._migrate_server(self.server)
        self.life.is_on("one", others=True)
        self._revert_resize(self.server)
        self.life.is_on_root("old")
        self._migrate_server(self.server)
        self._confirm_resize(self.server)
        self.life.is_on("one")
        self.life.end()

    def test_live_migration(self) -> None:
        self.life.live_migrate("one", "old")
        self.life.is_on_root("old")
        self.life.live_migrate("old", "one")
        self.life.is_on("one")
        self.life.end()

    def test_evacuation(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="old", expected_state="ACTIVE")
        self.life.is_on_root("old", others=True)
        self.life.is_back("one")
        self.life.is_on_root("old")
        self.go_down("old")
        self._evacuate_server(self.server, expected_host="one", expected_state="ACTIVE")
        self.life.is_on("one", others=True)
        self.life.is_back("old")
        self.life.is_on("one")
        self.life.end()

    def test_shelve_and_rebuild(self) -> None:
        self._shelve_server(self.server)
        assert self.life.used() == {}
        self.life.available("one", "disabled")
        self._unshelve_server(self.server)
        self.life.is_on_root("old")
        self._rebuild_server(self.server, IMAGE)
        self.life.is_on_root("old")
        self._shelve_server(self.server)
        assert self.life.used() == {}
        self.life.available("one", "enabled")
        self.life.available("old", "disabled")
        self._unshelve_server(self.server)
        self.life.is_on("one")
        self.life.end()


class TestWithoutDisk(TestThereAndBack):
    """Nothing is held of the root of one, and all of the root of old."""

    specs: ClassVar[Mapping[str, str]] = {**TWO, "hw:mem_page_size": "2MB"}
    disk_gb = 0


class TestResize(LibvirtMigrationMixin, Computes):
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Kinds(self)

    def test_to_a_flavor_without_nodes_and_back(self) -> None:
        self.life.available("old", "disabled")
        self._resize_server(self.server, self.life.plain)
        assert self.host_of(self.server) == "never"
        self._revert_resize(self.server)
        self.life.is_on("one")
        self._resize_server(self.server, self.life.plain)
        self._confirm_resize(self.server)
        assert self.life.holds() == {"never": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
        assert self.life.used().keys() == {"never"}

        self._resize_server(self.server, self.life.aware)
        self.life.is_on("one", others=True)
        self._revert_resize(self.server)
        assert self.life.holds() == {"never": {"VCPU": 1, "MEMORY_MB": 512, "DISK_GB": 1}}
        self._resize_server(self.server, self.life.aware)
        self._confirm_resize(self.server)
        self.life.is_on("one")
        self.life.end()

    def test_a_resize_to_more_nodes_on_a_host_of_the_second_kind(self) -> None:
        mixed = {**TWO, "hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "^0,^3"}
        flavor = self.flavor("mixed", mixed, vcpus=6, disk_gb=1)
        self._resize_server(self.server, flavor)
        self.life.is_on_root("old", others=True)
        self._confirm_resize(self.server)
        self.life.is_on_root("old")
        self._resize_server(self.server, self.life.aware)
        self._confirm_resize(self.server)
        self.life.is_on("one")
        self.life.end()


class TestWrongKind(LibvirtMigrationMixin, Computes):
    """A host of the wrong kind is refused, in whatever way it is asked for."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Kinds(self)

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
        self.boot_in_vain(self.life.plain, "one")
        self.boot_in_vain(self.life.aware, "never")
        assert self.life.used() == {}
        for host in ("one", "old"):  # past all filters, but not past Placement
            self.server = self.boot(self.life.aware, az=f"nova:{host}")
            self.life.is_on("one") if host == "one" else self.life.is_on_root("old")
            self.life.end()

    def moves_in_vain(self, host: str) -> None:
        before = self.life.holds()
        cold = {"migrate": {"host": host}}
        assert "No valid host" in self.life.fails(cold, "migrate", "conductor_migrate_server")
        live = {"os-migrateLive": {"host": host, "block_migration": "auto"}}
        self.api.post_server_action(self.server["id"], live)
        self._wait_for_migration_status(self.server, ["error"])
        self._wait_for_state_change(self.server, "ACTIVE")
        assert self.life.holds() == before

    def test_moves(self) -> None:
        self.moves_in_vain("never")
        self.life.is_on("one")
        self.life.end()
        self.server = self.boot(self.life.plain, host="old")
        self.moves_in_vain("one")
        self.life.end()

    def test_no_host_is_left(self) -> None:
        self.life.available("old", "disabled")
        self.moves_in_vain("never")
        self._shelve_server(self.server)
        self.life.available("one", "disabled")
        self.api.post_server_action(self.server["id"], {"unshelve": None})
        self._wait_for_action_fail_completion(self.server, "unshelve", "schedule_instances")
        assert held_of_nodes(self, self.server["id"]) == {}
        self.life.end()

    def test_evacuation(self) -> None:
        self.life.available("old", "disabled")
        self.go_down("one")
        before = self.life.holds()
        action: dict[str, Any] = {"evacuate": {}}
        self.api.post_server_action(self.server["id"], action)
        self._wait_for_action_fail_completion(self.server, "evacuate", "rebuild_server")
        assert self.life.holds() == before
        self.life.is_back("one")
        self.life.is_on("one")
