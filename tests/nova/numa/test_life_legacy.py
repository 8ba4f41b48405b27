"""Servers that go from hosts that report their nodes to hosts that do not, and back.

``one`` reports its nodes, ``old`` does not, ``never`` refuses servers with a NUMA
topology.
"""

from typing import Any

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.numa.agreement import held_of_nodes
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import ONE_AND_THREE, PINNED, PINNING

ACROSS = {**PINNED, **ONE_AND_THREE}


class Kinds(Life):
    """The server of a test starts on one; later there are old and never."""

    def __init__(self, cloud: Computes) -> None:
        super().__init__(cloud)
        self.start("one")
        self.aware = cloud.flavor("aware", ACROSS, vcpus=4, disk_gb=1)
        self.plain = cloud.flavor("plain", disk_gb=1)
        cloud.server = cloud.boot(self.aware)
        self.is_on("one")
        self.start("old", reporting=None)
        self.start("never", reporting=False)

    def available(self, host: str, status: str) -> None:
        """Enable or disable the nova-compute of a host."""
        service = self.cloud.api.get_services(host=host, binary="nova-compute")[0]
        self.cloud.api.put_service(service["id"], {"status": status})


class TestResize(Computes):
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
