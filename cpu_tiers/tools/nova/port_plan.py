"""The shortfalls of the ports of a host's servers, to list or to allocate.

For ``allocation heal``, after :mod:`~cpu_tiers.tools.nova.heal_plan`, the same for shares.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from nova import exception, objects
from nova.compute import vm_states

from cpu_tiers.accounting.holdings import Portion, ProviderId, ProviderName, sum_portions
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.port_bindings import HostTree, PortShortfall
from cpu_tiers.model.port import Port
from cpu_tiers.nova.consumers import ComputeNode, to_owner
from cpu_tiers.tools.nova.neutron import Ports
from cpu_tiers.tools.placement import port_healing
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.port_healing import ServerPorts


@dataclass(frozen=True, slots=True, kw_only=True)
class PortVerdict:
    """The shortfall of a port, or the reason why the port cannot be healed here.

    :param providers: the names of the providers that serve the port.
    :param goes_to: the amounts that the server gets for the port.
    """

    owner: Owner
    shortfall: PortShortfall
    providers: tuple[str, ...]
    goes_to: Portion[ProviderName]

    @property
    def adds(self) -> dict[str, int]:
        """The amounts that the server gets for the port, by resource class."""
        return self.goes_to.total


@dataclass(frozen=True, slots=True, kw_only=True)
class PortPlan:
    """The verdicts on the ports of a host.

    :param host: the name of the root provider.
    :param asking: the number of ports on the host that request resources.
    """

    host: str
    asking: int = 0
    verdicts: tuple[PortVerdict, ...] = ()


class HostPorts:
    """The servers of a host whose ports request resources.

    :param servers: only the servers with these uuids; all servers if it is empty.
    :raises NeutronUnavailable: Neutron cannot be asked.
    """

    def __init__(self, compute_node: ComputeNode, servers: Collection[str] = ()) -> None:
        """Read the ports from Neutron, so that a failure comes before anything is written."""
        self._node = compute_node
        self._neutron = Ports(compute_node.context)
        self._by_server = {
            uuid: ports
            for uuid, ports in self._neutron.of_host(compute_node.host).items()
            if not servers or uuid in servers
        }

    def plan(self, client: PlacementClient, will_hold: Collection[str] = ()) -> PortPlan:
        """Return what the ports lack.

        :param will_hold: servers whose allocations are all about to be written.
        """
        pending: Portion[ProviderId] = Portion()

        def plan_server(tree: HostTree, server: ServerPorts) -> tuple[PortShortfall, ...]:
            nonlocal pending
            shortfalls = port_healing.plan_ports(client, tree, server, pending)
            if not any(shortfall.limit for shortfall in shortfalls):
                pending += sum_portions(shortfall.lacks for shortfall in shortfalls)
            return shortfalls

        return self._each(client, plan_server, will_hold)

    def heal(self, client: PlacementClient) -> PortPlan:
        """Allocate what the ports lack, server by server; return what they lacked."""

        def heal_server(tree: HostTree, server: ServerPorts) -> tuple[PortShortfall, ...]:
            uuid = server.owner.server
            return port_healing.heal_ports(
                client, tree, lambda: self._again(uuid), self._neutron.record
            )

        return self._each(client, heal_server, ())

    def _each(self, client: PlacementClient, do: _Do, will_hold: Collection[str]) -> PortPlan:
        compute_node = self._node
        asking = sum(map(len, self._by_server.values()))
        servers = list(self._servers()) if asking else []
        if not servers:
            return PortPlan(host=compute_node.name, asking=asking)
        tree = port_healing.read_tree(client, compute_node.uuid)
        verdicts = [
            _verdict(server.owner, shortfall, tree)
            for server in servers
            for shortfall in do(tree, replace(server, will_hold=server.owner.server in will_hold))
        ]
        return PortPlan(host=compute_node.name, asking=asking, verdicts=tuple(verdicts))

    def _servers(self) -> Iterator[ServerPorts]:
        for server in objects.InstanceList.get_by_host_and_node(
            self._node.context, self._node.host, self._node.name, expected_attrs=_ATTRIBUTES
        ):
            if server.uuid in self._by_server and _is_at_rest(server):
                yield _server_ports(server, self._by_server[server.uuid])

    def _again(self, uuid: str) -> ServerPorts | None:
        """Return a server and its ports as they are now; ``None`` if it has left the host."""
        compute_node = self._node
        try:
            server = objects.Instance.get_by_uuid(
                compute_node.context, uuid, expected_attrs=_ATTRIBUTES
            )
        except exception.InstanceNotFound:
            return None
        if (server.host, server.node) != (compute_node.host, compute_node.name) or not _is_at_rest(
            server
        ):
            return None
        return _server_ports(server, self._neutron.of_server(uuid))


_Do = Callable[[HostTree, ServerPorts], tuple[PortShortfall, ...]]
_ATTRIBUTES = ["flavor", "system_metadata"]


def _is_at_rest(server: Any) -> bool:
    """Tell whether no task or resize of Nova may change the allocations of a server now.

    A resize that waits to be confirmed may be reverted, and Nova then restores
    the allocations of before.
    """
    return server.task_state is None and server.vm_state != vm_states.RESIZED


def _server_ports(server: Any, ports: tuple[Port, ...]) -> ServerPorts:
    return ServerPorts(
        owner=to_owner(server, server.flavor),
        ports=ports,
        interfaces=_interfaces(server, ports),
    )


def _interfaces(server: Any, ports: Iterable[Port]) -> dict[str, str]:
    """Return the interface whose virtual function a port has, by the id of the port."""
    slots = {port.id: port.binding_profile.get("pci_slot") for port in ports}
    if not any(slots.values()):
        return {}
    devices = objects.PciDeviceList.get_by_instance_uuid(server._context, server.uuid)
    parents = {device.address: device.extra_info.get("parent_ifname") for device in devices}
    return {port: parents[slot] for port, slot in slots.items() if parents.get(slot)}


def _verdict(owner: Owner, shortfall: PortShortfall, tree: HostTree) -> PortVerdict:
    serving = shortfall.binding.providers.values() if shortfall.binding else ()
    return PortVerdict(
        owner=owner,
        shortfall=shortfall,
        providers=tuple(sorted({tree.name(uuid) for uuid in serving})),
        goes_to=shortfall.lacks.renamed(tree.name),
    )
