"""The host cell, the page size and the devices of each guest cell of an allocation candidate.

The provider summaries of Placement's answer tell the host cell and the page size by traits. Nova
passes the mappings of a candidate on to its filters, so the mappings carry both.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nova import objects

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.guest import CellPlace
from cpu_tiers.model.numa import cell_of, page_size_of

Candidate = Mapping[str, Any]
"""An allocation request of Placement's answer, as Nova passes it on."""

Summaries = Mapping[str, Mapping[str, Any]]
"""The provider summaries of Placement's answer, by provider uuid."""


class NodeMappings(dict[str, Sequence[str]]):
    """The mappings of a candidate with NUMA nodes, and what Placement tells of their providers.

    :ivar places: the host cell and the page size of each guest cell, in order.
    :ivar interfaces: by the suffix of a port's group, the network interface of its device.
    """

    def __init__(
        self,
        mappings: Mapping[str, Sequence[str]],
        places: Sequence[CellPlace],
        summaries: Summaries,
    ) -> None:
        super().__init__(mappings)
        self.places, self.summaries = places, summaries
        self.interfaces: Mapping[str, str] = {}


def has_nodes(candidate: object) -> bool:
    """Tell whether a candidate has NUMA nodes.

    A candidate has no mappings below microversion 1.34, and Nova's own tests have candidates of
    other types.
    """
    return isinstance(candidate, Mapping) and "_PROC1" in candidate.get("mappings", ())


def places_of(mappings: object) -> Sequence[CellPlace] | None:
    """Return the places in the mappings of a candidate; ``None`` if it has no NUMA nodes."""
    return mappings.places if isinstance(mappings, NodeMappings) else None


def with_places(candidate: Candidate, summaries: Summaries) -> Candidate | None:
    """Return a candidate whose mappings tell its host cells and page sizes.

    :returns: ``None`` if the trait of a NUMA node does not tell the host cell.
    """
    mappings = candidate["mappings"]
    places = []
    nodes = AllocationRequest(allocations={}, mappings=mappings).nodes
    for number, node in enumerate(nodes, start=1):
        cell = cell_of(summaries[node]["traits"])
        if cell is None:
            return None
        # A guest cell without memory has no pages.
        pages = mappings.get(f"_MEM{number}", ())
        sizes = (page_size_of(summaries[uuid]["traits"]) for uuid in pages)
        places.append(CellPlace(cell, next(sizes, None)))
    if not places:
        return candidate
    return {**candidate, "mappings": NodeMappings(mappings, places, summaries)}


def on_interfaces(
    requests: Iterable[objects.InstancePCIRequest], mappings: object
) -> list[objects.InstancePCIRequest]:
    """Return requests for PCI devices of the interfaces that a candidate maps the ports to.

    nova-compute claims a virtual function of the physical function that the group of a port is
    mapped to, by the name of its interface (``update_pci_request_with_placement_allocations`` in
    ``nova/compute/utils.py``); Nova's scheduler does not compare the two. If the interface of a
    port is not known, Nova's own request is returned.
    """
    interfaces = mappings.interfaces if isinstance(mappings, NodeMappings) else {}
    return [_on_interface(request, interfaces.get(request.requester_id)) for request in requests]


def _on_interface(
    request: objects.InstancePCIRequest, interface: str | None
) -> objects.InstancePCIRequest:
    if interface is None:
        return request
    changed = request.obj_clone()  # the request belongs to the request spec, which is saved
    changed.spec = [{**spec, "parent_ifname": interface} for spec in request.spec]
    return changed
