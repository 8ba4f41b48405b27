"""A direct port that is attached to a server with NUMA nodes, which moves afterwards.

The port is not in the PCI requests of Nova's request spec, so nova-scheduler does not look for its
device. nova-compute refuses the server, and the server ends in ERROR.
"""

from tests.nova.computes import Computes
from tests.nova.networks import placement_of
from tests.nova.numa.devices import (
    DEVICE_SPEC,
    Interfaces,
    SriovNeutron,
    direct,
    functions,
    report,
)
from tests.nova.numa.pinning import OPTIONS_OFF, PINNED
from tests.nova.patience import wait_until

P1, P2 = SriovNeutron.PORTS


class TestNovaAlone(Computes):
    """All options of cpu-tiers are off."""

    kind = OPTIONS_OFF
    microversion = "latest"
    CAST_AS_CALL = False  # the refusal is the compute's, not an answer of nova-api

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(Interfaces())
        self.flags(device_spec=DEVICE_SPEC, group="pci")
        self.neutron = self.useFixture(SriovNeutron(self))
        self.client = placement_of(self)
        for port in (P1, P2):
            self.neutron.ask(port, direct(1500))

    def start(self, host: str, ens0: int, ens1: int) -> None:
        self.start_compute(host, host_info=self.kind.hardware(), pci_info=functions())
        report(self.client, host, {"ens0": ens0, "ens1": ens1})

    def test_a_migration_ends_in_error(self) -> None:
        """Both ports are on ens0; on the other host each interface has room for a port."""
        self.start("one", 3000, 1000)
        server = self._create_server(
            flavor_id=self.flavor("pinned", PINNED, vcpus=1), networks=[{"port": P1}]
        )
        self.api.attach_interface(server["id"], {"interfaceAttachment": {"port_id": P2}})
        self.start("two", 1500, 1500)
        self.api.post_server_action(server["id"], {"migrate": None})
        # Before the status is ERROR, the server is ACTIVE without a task for a moment.
        wait_until(lambda: self.api.get_server(server["id"])["status"] == "ERROR")
        message = self.api.get_server(server["id"])["fault"]["message"]
        assert "together with requested PCI devices cannot fit" in message
        assert self.host_of(server) == "one"
