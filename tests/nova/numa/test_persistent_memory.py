"""Persistent memory on servers with NUMA nodes.

Nova has no NUMA affinity for it, and its inventory stays on the root (spec "NUMA topology with
RPs", Proposed change). So a server on any node can have any namespace.
"""

import json

import fixtures

from tests.nova.computes import Computes
from tests.nova.numa.agreement import check_agreement, held_beside_nodes, held_of_nodes
from tests.nova.numa.pinning import PINNED, PINNING, TWO

SMALL, LARGE = "CUSTOM_PMEM_NAMESPACE_SMALL", "CUSTOM_PMEM_NAMESPACE_4GB"
SPECS = {**PINNED, "hw:pmem": "SMALL"}


class TestPersistentMemory(Computes):
    """Hosts of two NUMA nodes, with one namespace of label 4GB and two of label SMALL."""

    kind = PINNING
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.flags(group="libvirt", pmem_namespaces="4GB:ns_0,SMALL:ns_1|ns_2")
        namespaces = [
            {
                "name": name,
                "numa_node": node,
                "size": 4 * 2**30,
                "mode": "devdax",
                "daxregion": {"align": 2 * 2**20, "devices": [{"chardev": f"dax{name}"}]},
            }
            for name, node in (("ns_0", 0), ("ns_1", 0), ("ns_2", 1))
        ]
        listed = json.dumps(namespaces)
        privileged = "nova.privsep.libvirt"
        self.useFixture(
            fixtures.MockPatch(f"{privileged}.get_pmem_namespaces", return_value=listed)
        )
        self.useFixture(fixtures.MockPatch(f"{privileged}.cleanup_vpmem"))
        self.start_host("one")

    def test_every_node_takes_servers_with_a_namespace(self) -> None:
        flavor = self.flavor("small", SPECS, vcpus=4)
        servers = [self.boot(flavor) for _ in range(2)]
        assert {cell for one in servers for _, cell in self.where(one["id"])} == {0, 1}
        for server in servers:
            assert held_beside_nodes(self, server["id"]) == {"one": {SMALL: 1}}
        self._delete_server(servers[0])
        self.boot(flavor)
        server = self.boot(self.flavor("one vCPU", SPECS), state="ERROR")
        assert "No valid host" in self.fault_of(server)

    def test_shared_cpus(self) -> None:
        """Of a flavor with persistent memory alone, Nova makes a guest of one NUMA node."""
        server = self.boot(self.flavor("flavor", {"hw:pmem": "SMALL,4GB"}))
        assert self.where(server["id"]) == [("one", 0)]
        assert held_beside_nodes(self, server["id"]) == {"one": {SMALL: 1, LARGE: 1}}

    def test_moves(self) -> None:
        """A migration that is confirmed, and a resize to two nodes that is reverted."""
        server = self.boot(self.flavor("small", SPECS, vcpus=4))
        self.start_host("two")
        self._migrate_server(server)
        check_agreement(self, server["id"], others=True)
        self._confirm_resize(server)
        assert {host for host, _ in self.where(server["id"])} == {"two"}
        assert held_beside_nodes(self, server["id"]) == {"two": {SMALL: 1}}
        self._resize_server(
            server, self.flavor("two", {**PINNED, **TWO, "hw:pmem": "SMALL,4GB"}, vcpus=4)
        )
        check_agreement(self, server["id"], others=True)
        assert held_beside_nodes(self, server["id"]) == {"one": {SMALL: 1, LARGE: 1}}
        self.flags(host="two")  # with that of the last start, libvirt's driver undefines the guest
        self._revert_resize(server)
        assert {host for host, _ in self.where(server["id"])} == {"two"}
        assert held_beside_nodes(self, server["id"]) == {"two": {SMALL: 1}}
        self._delete_server(server)
        assert self.tree.used() == {}

    def test_a_server_older_than_the_nodes(self) -> None:
        self.nodes(None)
        self.start_host("two")
        server = self.boot(self.flavor("small", SPECS, vcpus=4), host="two")
        assert not held_of_nodes(self, server["id"])
        self.nodes(True)
        self.restart("two")
        assert {host for host, _ in self.where(server["id"])} == {"two"}
        assert held_beside_nodes(self, server["id"]) == {"two": {SMALL: 1}}
