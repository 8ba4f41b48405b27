"""The shortfalls of the ports of a host's servers, to list or to allocate: ``allocation heal``.

Ports are read and written through Nova's own client of Neutron.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

from keystoneauth1.exceptions import ClientException
from nova import exception, objects
from nova.compute import vm_states
from nova.context import RequestContext
from nova.network import constants, neutron

from cpu_tiers.accounting.holdings import Portion, ProviderId, sum_portions
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.port import Port
from cpu_tiers.nova.consumers import ComputeNode, to_owner
from cpu_tiers.tools.accounting.port_bindings import (
    ALLOCATION,
    PortBinding,
    PortPlan,
    PortShortfall,
)
from cpu_tiers.tools.nova import port_healing
from cpu_tiers.tools.nova.cloud import first_line
from cpu_tiers.tools.nova.port_healing import PortGone, PortNotRecorded, ServerPorts
from cpu_tiers.tools.placement.client import PlacementClient

_FIELDS = ["id", "device_id", constants.RESOURCE_REQUEST, constants.BINDING_PROFILE]
_FAULTS = (ClientException, exception.NovaException, neutron.neutron_client_exc.NeutronException)


class NeutronUnavailable(CpuTiersError):
    """Neutron does not answer, or ``[neutron]`` of nova.conf is wrong."""


class Ports:
    """The ports of Neutron that request resources; none without the Neutron extension for it.

    :param context: of an administrator, because Neutron shows the
        ``resource_request`` of a port to nobody else.
    :raises NeutronUnavailable: now, or when ports are read.
    """

    def __init__(self, context: RequestContext) -> None:
        with _translated_errors():
            self._client = neutron.get_client(context, admin=True)

    def of_host(self, host: str) -> dict[str, tuple[Port, ...]]:
        """Return the ports that are bound on the host of a nova-compute, by their server."""
        return self._read({"binding:host_id": host})

    def of_server(self, uuid: str) -> tuple[Port, ...]:
        """Return the ports of a server."""
        return self._read({"device_id": uuid}).get(uuid, ())

    def _read(self, filters: Mapping[str, str]) -> dict[str, tuple[Port, ...]]:
        with _translated_errors():
            bodies = self._client.list_ports(**filters, fields=_FIELDS)["ports"]
        ports: dict[str, tuple[Port, ...]] = {}
        for body in bodies:
            if body.get(constants.RESOURCE_REQUEST):
                server = body.get("device_id") or ""
                ports[server] = (*ports.get(server, ()), _to_port(body))
        return ports

    def record(self, binding: PortBinding) -> None:
        """Write the providers of a port into its profile; all other keys of the profile stay.

        :raises PortGone: there is no such port.
        :raises PortNotRecorded: Neutron refuses, or does not answer.
        """
        profile = {**binding.port.binding_profile, ALLOCATION: binding.allocation}
        body = {"port": {constants.BINDING_PROFILE: profile}}
        try:
            self._client.update_port(binding.port.id, body)
        except _FAULTS as error:
            is_gone = getattr(error, "status_code", None) == 404
            kind = PortGone if is_gone else PortNotRecorded
            raise kind(first_line(error)) from error


def _to_port(body: Mapping[str, Any]) -> Port:
    profile = body.get(constants.BINDING_PROFILE) or {}
    # A profile that is no JSON object is kept as its allocation, where read_binding() refuses it.
    return Port(
        id=body["id"],
        resource_request=body[constants.RESOURCE_REQUEST],
        binding_profile=profile if isinstance(profile, dict) else {ALLOCATION: profile},
    )


@contextmanager
def _translated_errors() -> Iterator[None]:
    try:
        yield
    except _FAULTS as error:
        raise NeutronUnavailable(
            f"Neutron cannot be asked: {first_line(error)}; check [neutron] in nova.conf, or"
            " leave ports out with --skip-ports"
        ) from error


class HostPorts:
    """The servers of a host whose ports request resources.

    The ports are read at once, so that a failure comes before anything is written.

    :param servers: only the servers with these uuids; all servers if it is empty.
    :raises NeutronUnavailable: Neutron cannot be asked.
    """

    def __init__(self, compute_node: ComputeNode, servers: Collection[str] = ()) -> None:
        self._node = compute_node
        self._neutron = Ports(compute_node.context)
        self._by_server = {
            uuid: ports
            for uuid, ports in self._neutron.of_host(compute_node.host).items()
            if not servers or uuid in servers
        }

    def run(
        self, client: PlacementClient, will_hold: Collection[str], *, is_applied: bool
    ) -> PortPlan:
        """Return what the ports lack, and allocate it, server by server, if it is applied.

        :param will_hold: for a plan, the servers whose allocations are all about to be written.
        """
        host, asking = self._node.name, sum(map(len, self._by_server.values()))
        servers = list(self._servers()) if asking else []
        if not servers:
            return PortPlan(host=host, asking=asking)
        tree = port_healing.read_tree(client, self._node.uuid)
        pending: Portion[ProviderId] = Portion()
        shortfalls: list[tuple[Owner, PortShortfall]] = []
        for server in servers:
            uuid = server.owner.server
            if is_applied:
                again = partial(self._again, uuid)
                lacks = port_healing.heal_ports(client, tree, again, self._neutron.record)
            else:
                planned = replace(server, will_hold=uuid in will_hold)
                lacks = port_healing.plan_ports(client, tree, planned, pending)
                if not port_healing.is_limited(lacks):
                    pending += sum_portions(shortfall.lacks for shortfall in lacks)
            shortfalls += [(server.owner, shortfall) for shortfall in lacks]
        return PortPlan(host=host, asking=asking, shortfalls=tuple(shortfalls), tree=tree)

    def _servers(self) -> Iterator[ServerPorts]:
        for server in objects.InstanceList.get_by_host_and_node(
            self._node.context, self._node.host, self._node.name, expected_attrs=_ATTRIBUTES
        ):
            if server.uuid in self._by_server and _is_at_rest(server):
                yield _server_ports(server, self._by_server[server.uuid])

    def _again(self, uuid: str) -> ServerPorts | None:
        """Return a server and its ports as they are now; ``None`` if it has left the host."""
        node = self._node
        with suppress(exception.InstanceNotFound):
            server = objects.Instance.get_by_uuid(node.context, uuid, expected_attrs=_ATTRIBUTES)
            is_here = (server.host, server.node) == (node.host, node.name)
            if is_here and _is_at_rest(server):
                return _server_ports(server, self._neutron.of_server(uuid))
        return None


_ATTRIBUTES = ["flavor", "system_metadata"]


def _is_at_rest(server: objects.Instance) -> bool:
    # A resize that waits to be confirmed may be reverted, and Nova then restores the allocations.
    return server.task_state is None and server.vm_state != vm_states.RESIZED


def _server_ports(server: objects.Instance, ports: tuple[Port, ...]) -> ServerPorts:
    owner = to_owner(server, server.flavor)
    return ServerPorts(owner=owner, ports=ports, interfaces=_interfaces(server, ports))


def _interfaces(server: objects.Instance, ports: Iterable[Port]) -> dict[str, str]:
    """Return the interface whose virtual function a port has, by the id of the port."""
    slots = {port.id: port.binding_profile.get("pci_slot") for port in ports}
    if not any(slots.values()):
        return {}
    devices = objects.PciDeviceList.get_by_instance_uuid(server._context, server.uuid)
    parents = {device.address: device.extra_info.get("parent_ifname") for device in devices}
    return {port: parents[slot] for port, slot in slots.items() if parents.get(slot)}
