"""Physical functions on the NUMA nodes of a host: ens0 on node 0, ens1 on node 1."""

import copy
import json
from collections.abc import Mapping
from typing import Any

import fixtures
from nova.conf import CONF
from nova.tests.fixtures import libvirt as fakelibvirt
from nova.virt.libvirt.utils import mdev_uuid2name
from oslo_utils.uuidutils import generate_uuid

from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.networking_sync import sync_networking
from tests.nova.networks import EGRESS, Neutron

DEVICE = "{}:NIC Switch agent:{}"
INTERFACES = "ens0", "ens1"
VENDOR, VF = fakelibvirt.PCI_VEND_ID, fakelibvirt.VF_PROD_ID
DEVICE_SPEC = [
    json.dumps({"vendor_id": VENDOR, "product_id": product, "physical_network": "physnet2"})
    for product in (fakelibvirt.PF_PROD_ID, VF)
]

NET_DEVICE = "<device><name>net_{0}</name><parent>{0}</parent><capability type='net'/></device>"


def direct(egress: int) -> dict[str, Any]:
    """Return the flat request of a direct port of physnet2."""
    required = ["CUSTOM_PHYSNET_PHYSNET2", "CUSTOM_VNIC_TYPE_DIRECT"]
    return {"resources": {EGRESS: egress}, "required": required}


class SriovNeutron(Neutron):
    """Has two direct ports, which request nothing at first."""

    PORTS = (Neutron.sriov_port["id"], Neutron.sriov_port2["id"])

    def __init__(self, test: Any) -> None:
        super().__init__(test)
        self._networks[self.network_2["id"]] = self.network_2
        self._subnets[self.subnet_2["id"]] = self.subnet_2
        for port in (self.sriov_port, self.sriov_port2):
            self._ports[port["id"]] = copy.deepcopy(port)


class Interfaces(fixtures.Fixture):
    """Has Nova's fake libvirt and sysfs name the physical functions, as a host does.

    The functions of even slots belong to ens0, those of odd slots to ens1.
    """

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        list_devices = fakelibvirt.Connection.listAllDevices

        def with_net_devices(connection: Any, flags: int) -> list[Any]:
            devices: list[Any] = list_devices(connection, flags)
            if flags & fakelibvirt.VIR_CONNECT_LIST_NODE_DEVICES_CAP_NET:
                devices += [
                    fakelibvirt.NodeDevice(connection, NET_DEVICE.format(name))
                    for name in connection.pci_info.devices
                ]
            return devices

        def interface(address: str, pf_interface: bool = False) -> str:
            slot = int(address.split(":")[2].split(".")[0], 16)
            return INTERFACES[slot % 2]

        self.useFixture(
            fixtures.MonkeyPatch(
                "nova.tests.fixtures.libvirt.Connection.listAllDevices", with_net_devices
            )
        )
        self.useFixture(
            fixtures.MonkeyPatch("nova.pci.utils.get_ifname_by_pci_address", interface)
        )


MIGRATES_GPUS = {"libvirt_version": 8_006_000, "qemu_version": 8_001_000}
"""The least versions for a live migration of a guest with a virtual GPU."""


class Gpus(fixtures.Fixture):
    """Has Nova's fake libvirt create virtual GPUs of the hosts' physical ones."""

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        CONF.set_override("enabled_mdev_types", [fakelibvirt.NVIDIA_11_VGPU_TYPE], "devices")
        self.addCleanup(CONF.clear_override, "enabled_mdev_types", "devices")
        name = "nova.virt.libvirt.driver.LibvirtDriver._create_mdev"
        self.useFixture(fixtures.MonkeyPatch(name, self.create_mdev))

    @staticmethod
    def create_mdev(driver: Any, parent: str, mdev_type: str, uuid: str | None = None) -> str:
        """Add a virtual GPU to libvirt, as a write to sysfs does."""
        uuid = uuid or generate_uuid()
        name = mdev_uuid2name(uuid)
        device = fakelibvirt.FakeMdevDevice(dev_name=name, type_id=mdev_type, parent=parent)
        driver._host.get_connection().mdev_info.devices[name] = device
        return uuid


def gpus_of(cloud: Any, host: str, server: str) -> list[str]:
    """Return the provider of each virtual GPU of a guest."""
    look = cloud.computes[host].driver._get_mediated_device_information
    addresses = cloud.domain(server, host).findall("devices/hostdev[@type='mdev']/source/address")
    mdevs = [look(mdev_uuid2name(address.get("uuid"))) for address in addresses]
    return sorted(f"{host}_{mdev['parent']}" for mdev in mdevs)


def functions(virtual: int = 8) -> Any:
    """Return two physical functions with half of the virtual functions each."""
    return fakelibvirt.HostPCIDevicesInfo(num_pfs=2, num_vfs=virtual)


def report(client: PlacementClient, host: str, egress: Mapping[str, int] | None = None) -> None:
    """Report the bandwidth of ens0 and ens1, as an SR-IOV agent does: 3000 each."""
    egress = egress or dict.fromkeys(INTERFACES, 3000)
    agent = NetworkAgent(
        host=host,
        agent_type="NIC Switch agent",
        bandwidths={
            name: {"egress": amount, "ingress": amount} for name, amount in egress.items()
        },
        physical_networks=dict.fromkeys(egress, "physnet2"),
        hypervisors=dict.fromkeys(egress, host),
    )
    (tree,) = build_networking_trees([agent])
    sync_networking(client, tree)
