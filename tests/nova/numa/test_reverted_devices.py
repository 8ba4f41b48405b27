"""A server is resized to a flavor with a PCI device, the resize is reverted, and the server moves.

Nova restores the flavor and the NUMA topology in the request spec, and leaves the PCI devices of
the refused flavor (docs/contributor/upstream/reverted-resize.rst). The move allocates a device
that the server does not get.
"""

import json

from nova import context, objects
from nova.tests.fixtures import libvirt as fakelibvirt

from tests.nova.computes import Computes
from tests.nova.numa.devices import VENDOR
from tests.nova.numa.pinning import OPTIONS_OFF

CARD = "CUSTOM_CARD"


class TestDevicesOfTheOtherFlavor(Computes):
    """All options of cpu-tiers are off; the random lives correct the request spec."""

    kind = OPTIONS_OFF
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        product = {"vendor_id": VENDOR, "product_id": fakelibvirt.PCI_PROD_ID}
        spec = json.dumps({**product, "resource_class": CARD})
        alias = json.dumps({**product, "resource_class": CARD, "name": "card"})
        self.flags(device_spec=[spec], alias=[alias], report_in_placement=True, group="pci")
        self.configure(pci_in_placement=True)
        devices = fakelibvirt.HostPCIDevicesInfo(num_pci=1)
        for host in ("one", "two"):
            self.start_compute(host, host_info=self.kind.hardware(), pci_info=devices)

    def test_a_reverted_resize_leaves_an_unused_card_allocated(self) -> None:
        server = self._create_server(flavor_id=self.flavor("plain"), networks="none", host="one")
        with_card = self.flavor("with a card", {"pci_passthrough:alias": "card:1"})
        server = self._resize_server(server, with_card)
        server = self._revert_resize(server)
        assert self.cards(server["id"]) == 0
        server = self._migrate_server(server)
        server = self._confirm_resize(server)
        assert self.host_of(server) == "two"
        assert self.cards(server["id"]) == 1
        admin = context.get_admin_context()
        assert not objects.PciDeviceList.get_by_instance_uuid(admin, server["id"])

    def cards(self, server: str) -> int:
        """Return the number of cards that a server has allocated."""
        return sum(amounts.get(CARD, 0) for amounts in self.held(server).values())
