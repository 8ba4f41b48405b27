"""Seams: a guest's cells go where Placement has allocated them, or nowhere.

Nova looks for host cells and page sizes of its own: in nova-scheduler for each
candidate and for what it takes of a host before the next server of a request,
in nova-compute in every claim. Where the nodes are known, Nova's function is
asked about each cell and its node alone: there is nothing left to choose, and
no memory of other choices that could mislead it.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from nova import objects
from nova.virt import hardware

from cpu_tiers.model.guest import CellPlace
from cpu_tiers.nova.candidate_cells import places_of
from cpu_tiers.nova.seams import Seam

Ways = Iterable[Sequence[CellPlace]]
"""Ways to place a guest: in each a place for each of its cells."""

_FIND: ContextVar[Callable[[objects.InstanceNUMATopology], Ways | None] | None] = ContextVar(
    "cpu_tiers_find_ways", default=None
)


@contextmanager
def allocated(find: Callable[[objects.InstanceNUMATopology], Ways | None]) -> Iterator[None]:
    """Have guests fitted only in the ways that ``find`` returns; ``None`` for Nova's own."""
    token = _FIND.set(find)
    try:
        yield
    finally:
        _FIND.reset(token)


@dataclass(frozen=True, slots=True)
class _Question:
    """What Nova wants to know: whether a guest fits on a host.

    :param fit: Nova's function, not wrapped.
    """

    fit: Callable[..., Any]
    host: objects.NUMATopology
    guest: objects.InstanceNUMATopology
    provider_mapping: Mapping[str, list[str]] | None
    limits: objects.NUMATopologyLimits | None
    pci_requests: Any
    pci_stats: Any

    def answer(self, places: Sequence[CellPlace]) -> objects.InstanceNUMATopology | None:
        """Return the guest as it is pinned on these places; ``None`` if it does not fit there.

        What concerns all cells together, devices and networks, is asked last.
        """
        ids = [place.host_cell for place in places]
        at = {cell.id: cell for cell in self.host.cells}
        if len(ids) != len(self.guest) or len(set(ids)) < len(ids) or not at.keys() >= set(ids):
            return None
        hosts = [at[number] for number in ids]
        cells: list[objects.InstanceNUMACell] = []
        for number, place in enumerate(places):
            fitted = self._fit_alone(number, hosts[number], place.page_size_kb)
            if fitted is None:
                return None
            cells += fitted.cells
        if not self._have_devices(cells) or not self._have_networks(hosts):
            return None
        return objects.InstanceNUMATopology(
            cells=cells, emulator_threads_policy=_policy(self.guest)
        )

    def _fit_alone(
        self, number: int, host: objects.NUMACell, size_kb: int | None
    ) -> objects.InstanceNUMATopology | None:
        """Return one cell of the guest as a guest that is pinned on one cell of the host.

        A guest that leaves the page size to the host, now or before it was
        pinned for the first time, gets the size that was allocated. One that
        asks for none gets from Nova the smallest, so that must be it.
        """
        cell = self.guest.cells[number].obj_clone()
        if size_kb is not None:
            if "pagesize" in cell and cell.pagesize:
                cell.pagesize = size_kb
            elif host.mempages and size_kb != min(pages.size_kb for pages in host.mempages):
                return None
        alone = objects.InstanceNUMATopology(
            cells=[cell], emulator_threads_policy=None if number else _policy(self.guest)
        )
        return self.fit(objects.NUMATopology(cells=[host]), alone, None, self.limits)

    def _have_devices(self, cells: Sequence[objects.InstanceNUMACell]) -> bool:
        if not self.pci_requests or not self.pci_stats:
            return True
        return bool(
            self.pci_stats.support_requests(self.pci_requests, self.provider_mapping, cells)
        )

    def _have_networks(self, hosts: Sequence[objects.NUMACell]) -> bool:
        if not self.limits or "network_metadata" not in self.limits:
            return True
        networks = self.limits.network_metadata
        return bool(hardware._numa_cells_support_network_metadata(self.host, hosts, networks))


def _policy(guest: objects.InstanceNUMATopology) -> str | None:
    return guest.emulator_threads_policy if "emulator_threads_policy" in guest else None


def _ways_of(mappings: Mapping[str, list[str]] | None) -> Ways | None:
    places = places_of(mappings) if mappings else None
    return None if places is None else [places]


def _constrain(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def numa_fit_instance_to_host(
        host_topology: objects.NUMATopology | None,
        instance_topology: objects.InstanceNUMATopology | None,
        provider_mapping: Mapping[str, list[str]] | None,
        limits: objects.NUMATopologyLimits | None = None,
        pci_requests: Any = None,
        pci_stats: Any = None,
    ) -> objects.InstanceNUMATopology | None:
        others = provider_mapping, limits, pci_requests, pci_stats
        ways = None
        if host_topology and instance_topology:
            find = _FIND.get()
            ways = find(instance_topology) if find else _ways_of(provider_mapping)
        if ways is None:
            return original(host_topology, instance_topology, *others)
        answers = map(_Question(original, host_topology, instance_topology, *others).answer, ways)
        return next((answer for answer in answers if answer is not None), None)

    return numa_fit_instance_to_host


def _consume_allocated(original: Callable[..., Any]) -> Callable[..., Any]:
    """Take of a host state what the first of its candidates has: Nova has just claimed that."""

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        candidates = self.allocation_candidates
        ways = _ways_of(candidates[0]["mappings"]) if candidates else None
        with allocated(lambda _: ways):
            return original(self, spec_obj)

    return consume_from_request


SEAMS = (
    Seam(
        module="nova.virt.hardware",
        path="numa_fit_instance_to_host",
        parameters=(
            "host_topology",
            "instance_topology",
            "provider_mapping",
            "limits",
            "pci_requests",
            "pci_stats",
        ),
        wrap=_constrain,
    ),
    Seam(
        module="nova.virt.hardware",
        path="_numa_cells_support_network_metadata",
        parameters=("host_topology", "chosen_host_cells", "network_metadata"),
    ),
    Seam(
        module="nova.pci.stats",
        path="PciDeviceStats.support_requests",
        parameters=("self", "requests", "provider_mapping", "numa_cells"),
    ),
)
"""For nova-scheduler and nova-compute."""

CONSUMES = Seam(
    module="nova.scheduler.host_manager",
    path="HostState.consume_from_request",
    parameters=("self", "spec_obj"),
    wrap=_consume_allocated,
)
"""For nova-scheduler."""
