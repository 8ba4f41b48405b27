"""The order of the candidates of each host, for each server of a request.

Nova's ``SchedulerManager._schedule`` looks for the candidates of a host by the uuid of the root
provider and claims the first candidate. Placement does not tell the free PCI devices on the NUMA
nodes of a host, and Nova's ``hardware.numa_fit_instance_to_host`` leaves the host cells with PCI
devices to the servers that request devices.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nova import objects
from oslo_log import log as logging

from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.nova import steps
from cpu_tiers.nova.convert import field
from cpu_tiers.nova.notes import host_of, search_of
from cpu_tiers.nova.numa.candidate_cells import Candidate, Summaries, has_nodes, places_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import HostState
from cpu_tiers.nova.seams import Function
from cpu_tiers.weights.fragmentation import cost_of

LOG = logging.getLogger(__name__)


def _order(
    original: Function,
    self: Any,
    spec_obj: objects.RequestSpec,
    host_states: Iterable[Any],
    index: int,
) -> Any:
    """Put the best candidate of each host first, before the filters judge the candidates.

    Nova's filters remove the candidates that they refuse from a host, for all servers of a
    request. But Nova takes a PCI device near the server before a device farther away
    (``PciDeviceStats._filter_pools_for_numa_cells``), so a candidate with a farther device is
    right as soon as a former server of the request has taken the near device.
    """
    before: list[tuple[Any, list[Candidate]]] = []
    requests_devices = functools.cache(functools.partial(_requests_devices, spec_obj))

    def prepared(host: HostState) -> Any:
        candidates = getattr(host, "allocation_candidates", [])
        # For the later servers of the request, _choose_again has ordered the candidates.
        if not index and has_nodes(next(iter(candidates), None)):
            with _novas_order_after_failure(spec_obj):
                put_best_first(host, spec_obj)
        if requests_devices():
            _give_back(host, spec_obj)
            before.append((host, getattr(host, "allocation_candidates", [])))
        return host

    hosts = original(self, spec_obj, map(prepared, host_states), index)
    for host, candidates in before:
        _keep_refused(host, candidates)
    return hosts


def _give_back(host: HostState, spec_obj: objects.RequestSpec) -> None:
    """Add the refused candidates that Placement still has room for, if the host has changed."""
    notes = host_of(host)
    # Another object takes the place of the summaries when a server takes a part of the host.
    if notes.refused and notes.left is not notes.left_at_refusal:
        host.allocation_candidates = [*host.allocation_candidates, *notes.refused]
        notes.refused = []
        with _novas_order_after_failure(spec_obj):
            put_best_first(host, spec_obj)


def _keep_refused(host: HostState, candidates: list[Candidate]) -> None:
    """Store the candidates with NUMA nodes that the filters have removed from a host."""
    notes = host_of(host)
    kept = set(map(id, getattr(host, "allocation_candidates", [])))
    refused = [each for each in candidates if id(each) not in kept and has_nodes(each)]
    notes.refused, notes.left_at_refusal = [*refused, *notes.refused], notes.left


def put_best_first(host: HostState, spec_obj: objects.RequestSpec) -> None:
    """Leave a host the candidates that can still be claimed, the best first.

    A rule decides only if all rules before it are equal. The rules about devices are the opposite
    for a server that requests PCI devices.

    1. the fewest NUMA nodes with free PCI devices;
    2. the rules of :func:`cpu_tiers.weights.fragmentation.best_first`;
    3. the fewest free PCI devices on the NUMA nodes;
    4. the lowest numbers of the host cells, in the order of the guest's cells, as in Nova.

    :param host: a host state whose candidates have NUMA nodes.
    """
    candidates = host.allocation_candidates
    if not candidates:
        return
    answer = CandidatesAnswer.unchecked(candidates, _summaries(host))
    # Nova claims a candidate as Placement sent it, which is not the form of an AllocationRequest.
    pairs = zip(answer.allocation_requests, candidates, strict=True)
    candidates_by_id = {id(request): candidate for request, candidate in pairs}
    devices = NodeDevices.of(host, spec_obj)
    pack = CONF.compute.packing_host_numa_cells_allocation_strategy

    def cost(request: AllocationRequest) -> tuple[Any, ...]:
        cells = cells_of(candidates_by_id[id(request)])
        nodes_with_devices, free_devices = devices.cost(cells)
        fragmentation = cost_of(request, answer.provider_summaries, pack=pack)
        return nodes_with_devices, fragmentation, free_devices, cells

    usable = (each for each in answer.claimable().allocation_requests if each.is_usable)
    best = sorted(usable, key=cost)
    host.allocation_candidates = [candidates_by_id[id(request)] for request in best]


def _summaries(host: HostState) -> Summaries:
    """Return the provider summaries of a host, as the former servers of the request left them."""
    left = host_of(host).left
    return host.allocation_candidates[0]["mappings"].summaries if left is None else left


def _choose_again(original: Function, self: HostState, spec_obj: objects.RequestSpec) -> Any:
    """Remove candidates that a host has no room for after a server of the request.

    Nova would claim the first candidate again for the request's next server, although the
    NUMA nodes of the candidate may be full.
    """
    result = original(self, spec_obj)
    candidates = self.allocation_candidates[:1]
    if has_nodes(next(iter(candidates), None)):
        with _novas_order_after_failure(spec_obj):
            answer = CandidatesAnswer.unchecked(candidates, _summaries(self))
            after = answer.after(answer.allocation_requests[0])
            host_of(self).left = after.provider_summaries
            put_best_first(self, spec_obj)
    return result


@contextlib.contextmanager
def _novas_order_after_failure(spec_obj: objects.RequestSpec) -> Iterator[None]:
    """Leave the candidates of a host in their order if Placement's answer cannot be read.

    Nova reads less of the answer than cpu-tiers. If a provider has no room, Placement refuses the
    claim, and nova-scheduler claims the next candidate. A request has one warning.
    """
    try:
        yield
    except Exception as error:
        search = search_of(spec_obj)
        if not search.has_kept_order:
            search.has_kept_order = True
            server = field(spec_obj, "instance_uuid")
            LOG.warning(
                "The candidates stay in Placement's order: %r", error, instance_uuid=server
            )


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The free PCI devices on the cells of a host, and whether a server requests devices.

    :param free: the number of free devices by host cell; cells without are left out.
    """

    free: Mapping[int, int]
    are_requested: bool

    @classmethod
    def of(cls, host: HostState, spec_obj: objects.RequestSpec) -> NodeDevices:
        """Return the devices of Nova's host state, for the server of a request spec."""
        free: Counter[int] = Counter()
        for pool in host.pci_stats.pools if host.pci_stats else ():
            if pool["numa_node"] is not None:
                free[pool["numa_node"]] += pool["count"]
        return cls(+free, _requests_devices(spec_obj))

    def cost(self, cells: Sequence[int]) -> tuple[int, int]:
        """Return two costs of a choice of host cells; smaller numbers are better.

        For a server that requests no devices: the number of cells with free devices, and the
        number of free devices. For a server that requests devices: the same with a minus.
        """
        counts = [self.free[cell] for cell in cells if cell in self.free]
        sign = -1 if self.are_requested else 1
        return sign * len(counts), sign * sum(counts)


def equals_of_first(host: HostState, spec_obj: objects.RequestSpec) -> list[Candidate]:
    """Return the first candidate of a host, with the next ones that have an equal first cost.

    :param host: a host state with at least one candidate.
    """
    candidates: list[Candidate] = host.allocation_candidates
    if not has_nodes(candidates[0]):
        return candidates
    devices = NodeDevices.of(host, spec_obj)
    if not devices.free:
        return candidates

    def cost(candidate: Candidate) -> int:
        return devices.cost(cells_of(candidate))[0]

    return list(next(itertools.groupby(candidates, cost))[1])


def cells_of(candidate: Candidate) -> list[int]:
    """Return the host cells of a candidate; none if the candidate has no NUMA nodes."""
    return [place.host_cell for place in places_of(candidate["mappings"]) or ()]


def _requests_devices(spec_obj: objects.RequestSpec) -> bool:
    requests = field(spec_obj, "pci_requests")
    return bool(requests and requests.requests)


SEAMS = (steps.sorted_hosts(_order), steps.consume(_choose_again))
