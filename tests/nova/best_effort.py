"""Servers with ports that request only traits, or any one of several traits."""

from collections.abc import Mapping
from typing import Any, ClassVar

from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.kinds import WEIGHER, Kind
from tests.nova.networks import (
    BRIDGE,
    EGRESS,
    PORT_IDS,
    Neutron,
    add_devices,
    bandwidth,
    held_of_devices,
    placement_of,
)

P1, P2, *_ = PORT_IDS
ANY = "in:CUSTOM_PHYSNET_NOWHERE,CUSTOM_PHYSNET_PHYSNET0"


def only_traits(name: str) -> dict[str, Any]:
    """Return what Neutron writes for a QoS rule with a minimum bandwidth of 0."""
    return {"request_groups": [{"id": name, **bandwidth(0)}], "same_subtree": [name]}


def any_network(name: str, egress: int) -> dict[str, Any]:
    """Return the request of a port on either of two physical networks."""
    required = [ANY, "CUSTOM_VNIC_TYPE_NORMAL"]
    group = {"id": name, "resources": {EGRESS: egress}, "required": required}
    return {"request_groups": [group], "same_subtree": [name]}


class BestEffort(LibvirtMigrationMixin, Computes):
    """A host without devices, the hosts one and two with br-0, and a port of each kind.

    nova-compute has read the option at its start; nova-scheduler has started without it.
    """

    kind = Kind(copies_disks=False)
    microversion = "latest"
    weighers = ("nova.scheduler.weights.all_weighers", WEIGHER)
    scheduler_options: ClassVar[Mapping[str, Any]] = {"query_placement_for_vcpu_shares": False}

    def setUp(self) -> None:
        super().setUp()
        self.neutron = self.useFixture(Neutron(self))
        self.neutron.groups = True
        self.neutron.ask(P1, only_traits("best"))
        self.neutron.ask(P2, any_network("any", 500))
        self.client = placement_of(self)
        self.small = self.flavor("small")
        self.configure(query_placement_for_port_traits=True)
        for host in ("none", "one", "two"):
            self.start_host(host)
        for host in ("one", "two"):
            add_devices(self.client, host)

    def server_of(self, *ports: str, **values: Any) -> dict[str, Any]:
        """Boot a server with ports."""
        networks = [{"port": port} for port in ports]
        server: dict[str, Any] = self._create_server(
            **{"flavor_id": self.small, "networks": networks, **values}
        )
        return server

    def device_of(self, host: str) -> str:
        """Return the uuid of br-0 of a host."""
        device = self.client.find_provider(BRIDGE.format(host))
        assert device is not None
        return device.uuid

    def is_on(self, host: str) -> None:
        """Check the allocations and the profiles of both ports."""
        assert self.host_of(self.server) == host
        held = held_of_devices(self.client, self.server["id"])
        assert held == {BRIDGE.format(host): {EGRESS: 500}}
        device = self.device_of(host)
        assert self.neutron.profile(P1)["allocation"] == {"best": device}
        assert self.neutron.profile(P2)["allocation"] == {"any": device}
