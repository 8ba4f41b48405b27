"""Direct ports with bandwidth on servers with NUMA nodes: node and device are a single choice."""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from nova import context, objects
from nova.tests.fixtures import libvirt as fakelibvirt

from tests.nova.computes import Computes
from tests.nova.networks import held_of_devices, placement_of
from tests.nova.numa.agreement import check_agreement, held_of_nodes
from tests.nova.numa.devices import (
    DEVICE,
    DEVICE_SPEC,
    VENDOR,
    VF,
    Interfaces,
    SriovNeutron,
    direct,
    functions,
    report,
)
from tests.nova.numa.pinning import PINNED, PINNING, TWO

P1, P2 = SriovNeutron.PORTS
ALIAS = {"pci_passthrough:alias": "vf:1"}
AFFINITY = "hw:pci_numa_affinity_policy"


class Devices(Computes):
    """One host of two NUMA nodes, with ens0 on node 0 and ens1 on node 1."""

    kind = PINNING
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(Interfaces())
        self.flags(device_spec=DEVICE_SPEC, group="pci")
        self.neutron = self.useFixture(SriovNeutron(self))
        self.client = placement_of(self)
        self.start()

    def start(self) -> None:
        """Start the host."""
        self.start_compute("one", host_info=self.kind.hardware(), pci_info=functions())

    def boot_with(
        self,
        *ports: str,
        state: str = "ACTIVE",
        vcpus: int = 1,
        specs: Mapping[str, str] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Boot a pinned server with ports."""
        name = f"flavor {len(self.api.get_flavors())}"
        server: dict[str, Any] = self._create_server(
            flavor_id=self.flavor(name, {**PINNED, **specs}, vcpus=vcpus),
            networks=[{"port": port} for port in ports] or "none",
            expected_state=state,
        )
        return server

    def fill(self, cell: int) -> None:
        """Take the dedicated CPUs of a node."""
        servers: dict[int, dict[str, Any]] = {}
        while cell not in servers:
            server = self.boot(self.flavor(f"full {len(servers)}", PINNED, vcpus=4))
            ((_, number),) = self.where(server["id"])
            servers[number] = server
        for number, server in servers.items():
            if number != cell:
                self._delete_server(server)

    def interfaces_of(self, server: dict[str, Any]) -> list[str]:
        """Return the interface of each virtual function of a server."""
        admin = context.get_admin_context()
        devices = objects.PciDeviceList.get_by_instance_uuid(admin, server["id"])
        return sorted(device.extra_info["parent_ifname"] for device in devices)


class TestOneHost(Devices):
    def test_an_empty_host_takes_a_port_of_either_interface(self) -> None:
        report(self.client, "one")
        self.neutron.ask(P1, direct(300))
        self.neutron.ask(P2, direct(2800))  # 300 + 2800 > 3000: on the other interface
        self.check(self.boot_with(P1), ["ens0", "ens1"])
        self.check(self.boot_with(P2), ["ens0", "ens1"])

    def test_a_server_is_on_the_node_of_the_device(self) -> None:
        self.neutron.ask(P1, direct(300))
        for interface, other in (("ens0", "ens1"), ("ens1", "ens0")):
            report(self.client, "one", {interface: 3000, other: 200})
            server = self.boot_with(P1)
            self.check(server, [interface])
            self._delete_server(server)

    def test_affinity_where_the_node_of_the_device_is_full(self) -> None:
        report(self.client, "one", {"ens0": 3000, "ens1": 200})
        self.fill(0)
        self.neutron.ask(P1, direct(300))
        for policy in ("required", "legacy"):
            server = self.boot_with(P1, state="ERROR", specs={AFFINITY: policy})
            assert "No valid host" in self.fault_of(server)
            self._delete_server(server)
        for policy in ("socket", "preferred"):  # both nodes are on the same socket
            server = self.boot_with(P1, specs={AFFINITY: policy})
            assert self.interfaces_of(server) == ["ens0"]
            assert {cell for _, cell in held_of_nodes(self, server["id"])} == {1}
            self._delete_server(server)

    def test_two_ports(self) -> None:
        """Two ports that need both interfaces, on a guest of one node, then of two."""
        report(self.client, "one")
        for port in (P1, P2):
            self.neutron.ask(port, direct(2000))
        server = self.boot_with(P1, P2, state="ERROR")
        assert "No valid host" in self.fault_of(server)
        self._delete_server(server)
        server = self.boot_with(P1, P2, vcpus=2, specs=TWO)
        assert self.interfaces_of(server) == ["ens0", "ens1"]
        assert {cell for _, cell in self.where(server["id"])} == {0, 1}

    def check(self, server: dict[str, Any], allowed: Sequence[str]) -> None:
        """Check that bandwidth, virtual function and node of a server belong together."""
        (interface,) = self.interfaces_of(server)
        assert interface in allowed
        held = held_of_devices(self.client, server["id"])
        assert held.keys() == {DEVICE.format("one", interface)}
        ((_, cell),) = self.where(server["id"])
        assert interface == f"ens{cell}"


class TestMoves(Devices):
    """From ens0 and node 0 of a host to ens1 and node 1 of another host."""

    def setUp(self) -> None:
        super().setUp()
        report(self.client, "one", {"ens0": 3000, "ens1": 200})
        self.neutron.ask(P1, direct(300))
        self.server = self.boot_with(P1)
        self.start_compute("two", host_info=self.kind.hardware(), pci_info=functions())
        report(self.client, "two", {"ens0": 200, "ens1": 3000})
        self._migrate_server(self.server)
        assert check_agreement(self, self.server["id"], others=True) == [("two", 1)]

    def test_confirm(self) -> None:
        self._confirm_resize(self.server)
        assert self.interfaces_of(self.server) == ["ens1"]
        assert self.where(self.server["id"]) == [("two", 1)]

    def test_revert(self) -> None:
        self._revert_resize(self.server)
        assert self.interfaces_of(self.server) == ["ens0"]
        assert self.where(self.server["id"]) == [("one", 0)]


class TestAliases(Devices):
    """PCI devices in Placement, which a flavor requests by an alias."""

    def setUp(self) -> None:
        self.flags(
            alias=[
                json.dumps(
                    {"name": "vf", "vendor_id": VENDOR, "product_id": VF, "resource_class": "VF"}
                )
            ],
            group="pci",
        )
        super().setUp()

    def start(self) -> None:
        self.flags(report_in_placement=True, group="pci")
        self.configure(pci_in_placement=True)
        spec = {"vendor_id": VENDOR, "product_id": VF, "resource_class": "VF"}
        self.flags(device_spec=[json.dumps(spec)], group="pci")
        self.start_compute("one", host_info=self.kind.hardware(), pci_info=functions(2))

    def test_a_server_is_on_the_node_of_the_device(self) -> None:
        servers = [self.boot_with(specs=ALIAS) for _ in range(2)]
        cells = []
        for server in servers:
            ((_, cell),) = self.where(server["id"])
            assert self.interfaces_of(server) == [f"ens{cell}"]
            cells.append(cell)
        assert sorted(cells) == [0, 1]
        self.boot_with(state="ERROR", specs=ALIAS)
        self._delete_server(servers[0])
        self.fill(cells[0])
        server = self.boot_with(state="ERROR", specs=ALIAS)


class TestOtherServers(Devices):
    """A host with a single PCI device. Servers that do not request it leave its node free."""

    def start(self) -> None:
        of_device = {"vendor_id": VENDOR, "product_id": fakelibvirt.PCI_PROD_ID}
        alias = json.dumps({"name": "card", **of_device})
        self.flags(device_spec=[json.dumps(of_device)], alias=[alias], group="pci")

    def boot_beside_the_device(self, cell: int) -> list[int]:
        """Boot a server without the device, and one with it; return their NUMA nodes."""
        name = f"host{cell}"
        device = fakelibvirt.HostPCIDevicesInfo(num_pci=1, numa_node=cell)
        self.start_compute(name, host_info=self.kind.hardware(), pci_info=device)
        card = {"pci_passthrough:alias": "card:1"}
        cells = []
        for specs in (PINNED, {**PINNED, **card}):
            flavor = self.flavor(f"flavor {len(self.api.get_flavors())}", specs, vcpus=4)
            ((_, own),) = self.where(self.boot(flavor, host=name)["id"])
            cells.append(own)
        return cells

    def test_vcpus_are_on_the_node_away_from_the_device(self) -> None:
        assert self.boot_beside_the_device(0) == [1, 0]
        assert self.boot_beside_the_device(1) == [0, 1]
