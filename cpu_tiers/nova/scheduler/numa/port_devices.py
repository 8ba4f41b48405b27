"""The network interfaces of the devices that allocation candidates map the groups of ports to.

A candidate maps the request group of a port to the provider of a physical function. Neutron's
agent reports the provider, and only its name tells the interface.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from nova import objects

from cpu_tiers.model.names import interface_of, is_trait
from cpu_tiers.nova.no_answer import read
from cpu_tiers.nova.numa.candidate_cells import Candidate, NodeMappings

if TYPE_CHECKING:
    from cpu_tiers.nova.protocols import ReportClient

_INTERFACES: dict[str, str | None] = {}
"""The interface by the provider uuid of a device; ``None`` if the name has no interface."""


def groups_of_devices(request_spec: objects.RequestSpec) -> frozenset[str]:
    """Return the suffixes of the request groups of the ports that get a PCI device.

    Empty with Neutron's extension ``port-resource-request-groups``: its groups do not name the
    port, and nova-compute does not choose the device by them either.
    """
    if "pci_requests" not in request_spec or not request_spec.pci_requests:
        return frozenset()
    ports = {request.requester_id for request in request_spec.pci_requests.requests}
    groups = {group.requester_id for group in request_spec.requested_resources or ()}
    return frozenset(ports & groups - {None})


def read_interfaces(
    client: ReportClient, context: Any, groups: Mapping[str, Any], candidates: Iterable[Candidate]
) -> None:
    """Ask Placement for the interfaces of the devices of candidates with NUMA nodes.

    Nothing is asked if all interfaces are known. The candidates do not change.

    :param client: Nova's ``SchedulerReportClient``.
    :param groups: Nova's ``RequestGroup`` of each port, by the suffix.
    :raises ValueError: Placement refuses to list the devices.
    :raises keystoneauth1.exceptions.ClientException: Placement does not answer.
    """
    on_nodes = _on_nodes(candidates)
    for suffix, group in groups.items():
        if not {mappings[suffix][0] for mappings in on_nodes} <= _INTERFACES.keys():
            # without "in:A,B" and "!A", which the list of devices does not understand
            traits = ",".join(sorted(filter(is_trait, group.required_traits)))
            query = f"?required={traits}" if traits else ""  # "required" since version 1.18
            answer = read(client, context, f"/resource_providers{query}", version="1.18")
            devices = answer["resource_providers"]
            _INTERFACES.update({it["uuid"]: interface_of(it["name"]) for it in devices})


def tell_interfaces(groups: Iterable[str], candidates: Iterable[Candidate]) -> None:
    """Put the interfaces that are known into the mappings of candidates with NUMA nodes.

    :param groups: the suffixes of the request groups of the ports.
    """
    for mappings in _on_nodes(candidates):
        named = ((suffix, _INTERFACES.get(mappings[suffix][0])) for suffix in groups)
        mappings.interfaces = {suffix: name for suffix, name in named if name is not None}


def _on_nodes(candidates: Iterable[Candidate]) -> list[NodeMappings]:
    return [m for each in candidates if isinstance(m := each["mappings"], NodeMappings)]
