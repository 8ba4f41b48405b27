"""A server that exists moves, whatever faults its flavor has (law L3, decision D72)."""

from typing import Any

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.kinds import NODES_OF_SEVEN
from tests.nova.old_servers import OLD_SERVERS, Old, plant


class TestOldServers(LibvirtMigrationMixin, Computes):
    """Two hosts that report shares, and all moves of servers that have faults."""

    microversion = "latest"
    kind = NODES_OF_SEVEN
    extends_cpu_policies = True

    def setUp(self) -> None:
        super().setUp()
        for host in ("one", "two"):
            self.start_host(host)

    def boot_old(self) -> list[tuple[Old, dict[str, Any]]]:
        """Boot a server of each kind on the first host, and give it its faults after that."""
        servers = []
        for number, old in enumerate(OLD_SERVERS):
            flavor = self.flavor(f"old{number}", old.booted, vcpus=2)
            server = self.boot(flavor, host="one")
            plant(server["id"], old)
            servers.append((old, server))
        return servers

    def check(self, old: Old, server: dict[str, Any], host: str) -> None:
        assert self.host_of(server) == host, old.name
        assert self.held(server["id"])[host] == old.held, old.name
        assert self.domain_shares(server["id"], host) == old.weight, old.name

    def test_all_moves(self) -> None:
        servers = self.boot_old()
        self.src, self.dest = self.computes["one"], self.computes["two"]
        for old, self.server in servers:
            self._live_migrate(self.server)
            self.check(old, self.server, "two")
        for old, server in servers:
            self._migrate_server(server)
            self.check(old, server, "one")
            self._confirm_resize(server)
        self.go_down("one")
        for old, server in servers:
            self._evacuate_server(server, expected_host="two")
            self.check(old, server, "two")
        self.restart("one")
        self.come_back("one")
        for old, server in servers:
            self._shelve_server(server)
            self._unshelve_server(server)
            self.check(old, server, self.host_of(server))
        good = self.tier("good", "30", vcpus=2)
        for old, server in servers:
            self._rebuild_server(server, server["image"]["id"])
            self.check(old, server, self.host_of(server))
            self._resize_server(server, good)
            self._confirm_resize(server)
            assert self.allocated(server["id"]) == {self.host_of(server): 60}, old.name
