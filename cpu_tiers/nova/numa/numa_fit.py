"""Seams that pin guest cells to the host cells that the server has allocated in Placement.

Nova's ``hardware.numa_fit_instance_to_host`` chooses host cells and page sizes without regard to
allocations on NUMA nodes. nova-scheduler calls the function for each candidate and to consume a
host for the next server of a request, nova-compute in every claim of the resource tracker. If the
host cells are known, the seam calls Nova's function once for each guest cell, with the allocated
host cell as the whole host.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from nova import exception, objects
from nova.virt import hardware
from oslo_log import log as logging

from cpu_tiers.model.guest import CellPlace
from cpu_tiers.nova import steps
from cpu_tiers.nova.convert import field
from cpu_tiers.nova.numa.candidate_cells import on_interfaces, places_of
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)

Ways = Iterable[Sequence[CellPlace]]
"""Ways to place a guest. Each way has a place for every guest cell, in order."""

Requests = Sequence[Any]
"""The PCI requests of a guest, of Nova's class ``InstancePCIRequest``."""

FindWays = Callable[[Any], Ways | None]
"""Takes Nova's topology of a guest and returns the ways to place it; ``None``: Nova chooses."""

VaryRequests = Callable[[Requests], Iterable[Requests]]


def _as_they_are(requests: Requests) -> Iterator[Requests]:
    yield requests


# A context variable, since Nova's callers pass no allocations through to
# numa_fit_instance_to_host, and threads, native or green, fit guests at the same time.
_ALLOCATED: ContextVar[tuple[FindWays | None, VaryRequests]] = ContextVar(
    "cpu_tiers_allocated", default=(None, _as_they_are)
)


@contextmanager
def allocated(find: FindWays, vary: VaryRequests = _as_they_are) -> Iterator[None]:
    """Fit guests only in the ways that ``find`` returns, while the context is active.

    :param vary: takes the PCI requests of a guest and returns them as often as they may be
        checked, each time changed in place. After the first check that succeeds, the requests
        stay as they are.
    """
    token = _ALLOCATED.set((find, vary))
    try:
        yield
    finally:
        _ALLOCATED.reset(token)


@dataclass(frozen=True, slots=True)
class _Fitting:
    """The parameters of a call of Nova's ``numa_fit_instance_to_host``.

    :param fit: the function of Nova without the wrapper.
    """

    fit: Callable[..., Any]
    host: objects.NUMATopology
    guest: objects.InstanceNUMATopology
    provider_mapping: Mapping[str, Sequence[str]] | None
    limits: objects.NUMATopologyLimits | None
    pci_requests: Any
    pci_stats: Any

    def on_places(self, places: Sequence[CellPlace]) -> objects.InstanceNUMATopology | None:
        """Return the guest, pinned to ``places``; ``None`` if the guest does not fit.

        As in Nova, PCI devices and networks, which concern all guest cells, are checked last.
        """
        ids = [place.host_cell for place in places]
        cells_by_id = {cell.id: cell for cell in self.host.cells}
        # Nova requires a host cell of its own for each guest cell. With group_policy=none an
        # allocation candidate may have several guest cells on one NUMA node.
        known_ids = cells_by_id.keys() & set(ids)
        if not len(known_ids) == len(ids) == len(self.guest):
            return None
        host_cells = [cells_by_id[number] for number in ids]
        cells: list[objects.InstanceNUMACell] = []
        for number, place in enumerate(places):
            fitted = self._fit_cell(number, host_cells[number], place.page_size_kb)
            if fitted is None:
                return None
            cells += fitted.cells
        has_devices = self._have_devices(cells)
        if not (has_devices and self._have_networks(host_cells)):
            what = "networks" if has_devices else "PCI devices"
            LOG.debug("The %s of the server are not on the host cells %s", what, ids)
            return None
        policy = field(self.guest, "emulator_threads_policy")
        return objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=policy)

    def _fit_cell(
        self, number: int, host_cell: objects.NUMACell, size_kb: int | None
    ) -> objects.InstanceNUMATopology | None:
        """Return the guest with only the cell ``number``, pinned to ``host_cell``.

        :param size_kb: the size of the allocated pages; ``None`` if it is not known.
        """
        # Nova's function changes the cells of the guest, and several ways may be tried.
        cell = self.guest.cells[number].obj_clone()
        if size_kb is not None:
            asked = field(cell, "pagesize") or None
            if not _may_have(asked, host_cell, size_kb):
                return None
            if asked is not None:
                cell.pagesize = size_kb
        # Nova reserves a CPU for isolated emulator threads on the first cell of each guest, so
        # only the guest with the first cell has the policy.
        policy = None if number else field(self.guest, "emulator_threads_policy")
        guest = objects.InstanceNUMATopology(cells=[cell], emulator_threads_policy=policy)
        # A host and a guest of one cell each leave nothing to Nova's fit_cache, which keeps
        # results by the ids of guest cells although fitting changes the ids.
        return self.fit(objects.NUMATopology(cells=[host_cell]), guest, None, self.limits)

    def _have_devices(self, cells: Sequence[objects.InstanceNUMACell]) -> bool:
        """Tell whether the guest gets all devices, as PciDeviceStats.support_requests does.

        nova-compute passes no mapping, and has the interface of a device in its requests. With
        ``[filter_scheduler] pci_in_placement`` a candidate also maps the devices of an alias. Nova
        then takes only as many devices as the candidate has near the cells, and the server would
        start with fewer devices (docs/contributor/upstream/fewer-devices.rst).
        """
        if not self.pci_requests or not self.pci_stats:
            return True
        _, vary = _ALLOCATED.get()
        return any(
            self._give_devices(cells, on_interfaces(requests, self.provider_mapping))
            for requests in vary(self.pci_requests)
        )

    def _give_devices(self, cells: Sequence[objects.InstanceNUMACell], requests: Requests) -> bool:
        stats = copy.deepcopy(self.pci_stats)
        left = _free(stats) - sum(request.count for request in requests)
        try:
            stats.apply_requests(requests, self.provider_mapping, cells)
        except exception.PciDeviceRequestFailed:
            return False
        return not self.provider_mapping or _free(stats) <= left

    def _have_networks(self, host_cells: Sequence[objects.NUMACell]) -> bool:
        if not self.limits or "network_metadata" not in self.limits:
            return True
        networks = self.limits.network_metadata
        return bool(hardware._numa_cells_support_network_metadata(self.host, host_cells, networks))


def _free(stats: Any) -> int:
    return sum(pool["count"] for pool in stats.pools)


def _may_have(asked: int | None, host_cell: objects.NUMACell, size_kb: int) -> bool:
    """Tell whether a guest cell may have the pages that are allocated on a host cell.

    :param asked: the request of the guest, as Nova has it. A positive size may be the size of the
        pages on the former host, which Nova wrote over the request, so any size will do.
    """
    if not host_cell.mempages:
        return True
    is_small: bool = size_kb == min(pages.size_kb for pages in host_cell.mempages)
    # Without a request, Nova's _numa_fit_instance_cell takes the smallest pages.
    if asked is None or asked == hardware.MEMPAGES_SMALL:
        return is_small
    return not (is_small and asked == hardware.MEMPAGES_LARGE)


def _ways_of(mappings: object) -> Ways | None:
    places = places_of(mappings)
    return None if places is None else [places]


def _constrain(
    original: Function,
    host_topology: objects.NUMATopology | None,
    instance_topology: objects.InstanceNUMATopology | None,
    provider_mapping: Mapping[str, Sequence[str]] | None,
    limits: objects.NUMATopologyLimits | None = None,
    pci_requests: Any = None,
    pci_stats: Any = None,
) -> objects.InstanceNUMATopology | None:
    options = provider_mapping, limits, pci_requests, pci_stats
    ways = None
    if host_topology and instance_topology:
        # NUMATopologyFilter passes the mappings of a candidate. nova-compute passes None,
        # so nova/compute/numa/numa_pinning.py finds the ways by the server's allocations.
        find, _ = _ALLOCATED.get()
        ways = find(instance_topology) if find else _ways_of(provider_mapping)
    if ways is None:
        # Nova's filter passes one guest for all candidates of a host, although fitting changes
        # the guest, and Nova's fit_cache takes a changed guest cell for another one
        # (docs/contributor/upstream/fit-cache.rst).
        guest = instance_topology and instance_topology.obj_clone()
        return original(host_topology, guest, *options)
    fitting = _Fitting(original, host_topology, instance_topology, *options)
    pinned = (fitting.on_places(places) for places in ways)
    return next((guest for guest in pinned if guest is not None), None)


def _consume_allocated(original: Function, self: Any, spec_obj: objects.RequestSpec) -> Any:
    """Consume the host cells of the first candidate, which Nova has just claimed.

    Nova's ``HostState.consume_from_request`` would choose host cells anew, without the
    mappings of the candidate.
    """
    candidates = self.allocation_candidates
    mappings = candidates[0]["mappings"] if candidates else None
    ways = _ways_of(mappings)
    if ways is None:
        return original(self, spec_obj)
    requests = spec_obj.pci_requests
    if requests:  # Nova takes the devices of ports from the interfaces of the candidate
        spec_obj.pci_requests = requests.obj_clone()
        spec_obj.pci_requests.requests = on_interfaces(requests.requests, mappings)
    try:
        with allocated(lambda _: ways):
            return original(self, spec_obj)
    finally:
        spec_obj.pci_requests = requests


SEAMS = (
    seam(
        "nova.virt.hardware:numa_fit_instance_to_host",
        "host_topology, instance_topology, provider_mapping, limits=None, pci_requests=None,"
        " pci_stats=None",
        _constrain,
    ),
    seam(
        "nova.virt.hardware:_numa_cells_support_network_metadata",
        "host_topology, chosen_host_cells, network_metadata",
    ),
    seam(
        "nova.pci.stats:PciDeviceStats.apply_requests",
        "self, requests, provider_mapping, numa_cells=None",
    ),
)

CONSUMES = steps.consume(_consume_allocated)
"""The seam for nova-scheduler only."""
