"""Seam that takes the PCI devices of a server from the providers of its allocation candidate.

A candidate maps the request group of a port to the provider of a physical function. nova-compute
claims a virtual function of the same physical function, by the name of its interface
(``update_pci_request_with_placement_allocations`` in ``nova/compute/utils.py``). nova-scheduler
does not compare the two, so NUMATopologyFilter accepts a NUMA node with a virtual function of
any physical function, and nova-compute refuses the server.

With ``[filter_scheduler] pci_in_placement`` a candidate also names the devices of an alias. Nova
leaves those out that are too far from the NUMA nodes of the server, and is content if the others
have as many free devices as the server requests. But Nova takes only as many of them as the
candidate has there, and the server starts with fewer devices (docs/upstream/fewer-devices.rst).
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from nova import exception, objects

from cpu_tiers.model.names import is_trait
from cpu_tiers.model.network_agent import interface_of
from cpu_tiers.nova.candidate_cells import Candidate, read_providers
from cpu_tiers.nova.seams import Seam

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


def learn(
    client: Any, context: Any, groups: Mapping[str, Any], candidates: Sequence[Candidate]
) -> None:
    """Store the interfaces of the devices that candidates map groups of ports to.

    :param client: Nova's ``SchedulerReportClient``.
    :param groups: Nova's ``RequestGroup`` of each port, by the suffix.
    :raises NodesUnknown: Placement refuses to list the devices.
    :raises keystoneauth1.exceptions.ClientException: Placement does not answer.
    """
    for suffix, group in groups.items():
        devices = {uuid for candidate in candidates for uuid in candidate["mappings"][suffix]}
        if not devices <= _INTERFACES.keys():
            # without "in:A,B" and "!A", which the list of devices does not understand
            traits = ",".join(sorted(filter(is_trait, group.required_traits)))
            answer = read_providers(client, context, f"?required={traits}" if traits else "")
            _INTERFACES.update({device["uuid"]: interface_of(device["name"]) for device in answer})


def is_unread(candidate: Candidate, suffixes: Collection[str]) -> bool:
    """Tell whether Placement has not told the name of a device of a candidate.

    :param suffixes: the suffixes of the groups of ports that get a PCI device.
    """
    mappings = candidate["mappings"]
    return any(uuid not in _INTERFACES for suffix in suffixes for uuid in mappings.get(suffix, ()))


def _take_from_device(original: Callable[..., Any]) -> Callable[..., Any]:
    """Look for the virtual function of a port only on the interface that the port is mapped to.

    A candidate of which Nova takes fewer devices than the server requests is refused.
    """

    @functools.wraps(original)
    def apply_requests(
        self: Any,
        requests: Sequence[objects.InstancePCIRequest],
        provider_mapping: Mapping[str, Sequence[str]] | None,
        numa_cells: Sequence[objects.InstanceNUMACell] | None = None,
    ) -> Any:
        # nova-compute gives no mapping, and has the interface in its requests.
        if not provider_mapping:
            return original(self, requests, provider_mapping, numa_cells)
        requests = [_on_interface(request, provider_mapping) for request in requests]
        left = _devices(self) - sum(request.count for request in requests)
        result = original(self, requests, provider_mapping, numa_cells)
        if _devices(self) > left:
            raise exception.PciDeviceRequestFailed(requests=requests)
        return result

    return apply_requests


def _devices(stats: Any) -> int:
    """Return the number of free devices in all pools of a host."""
    return sum(pool["count"] for pool in stats.pools)


def _on_interface(
    request: objects.InstancePCIRequest, mapping: Mapping[str, Sequence[str]]
) -> objects.InstancePCIRequest:
    """Return a request for a device of the interface that a port is mapped to.

    Nova's own request is returned if it is not the request of a port with bandwidth, or if the
    interface is not known.
    """
    devices = mapping.get(request.requester_id, ())
    interface = _INTERFACES.get(devices[0]) if devices else None
    if interface is None:
        return request
    changed = request.obj_clone()  # the request belongs to the request spec, which is saved
    changed.spec = [{**spec, "parent_ifname": interface} for spec in request.spec]
    return changed


SEAM = Seam(
    module="nova.pci.stats",
    path="PciDeviceStats.apply_requests",
    parameters=("self", "requests", "provider_mapping", "numa_cells=None"),
    wrap=_take_from_device,
    why=(
        "Tells whether a host has the PCI devices of a server, and consumes them; the wrapper "
        "looks for the device of a port only on the interface of its allocation candidate, and "
        "refuses a candidate of which Nova takes fewer devices than the server requests."
    ),
    unseen=(
        "If another function looks for devices, a server is sent to a NUMA node without the "
        "device that its port is allocated on, and nova-compute refuses the server; or a server "
        "starts with a part of its devices."
    ),
)
"""The seam for nova-scheduler, whose filters and ``HostState.consume_from_request`` call it."""
