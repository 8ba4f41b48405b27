"""Seams that put the best candidate of each host first, for each server of a request.

Nova's ``SchedulerManager._schedule`` looks for the candidates of a host by the uuid of
the root provider and claims the first candidate.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nova import objects

from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.nova.numa.candidate_cells import Summaries, has_nodes
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.numa.node_devices import NodeDevices, cells_of
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.seams import Seam
from cpu_tiers.weights.fragmentation import cost_of

if TYPE_CHECKING:
    from cpu_tiers.nova.protocols import HostState

LEFT = "cpu_tiers_left"
"""The attribute of a host state with the provider summaries that a server of the request left."""


def _order(original: Callable[..., object]) -> Callable[..., Any]:
    """Put the best candidate of each host first, before the filters judge the candidates."""

    @functools.wraps(original)
    def _get_sorted_hosts(
        self: Any, spec_obj: objects.RequestSpec, host_states: Iterable[HostState], index: int
    ) -> Any:
        def ordered(host: HostState) -> Any:
            if has_nodes(next(iter(host.allocation_candidates), None)):
                with refusing("the order of the candidates"):
                    put_best_first(host, spec_obj)
            return host

        # For the later servers of the request, _choose_again has ordered the candidates.
        hosts = host_states if index else map(ordered, host_states)
        return original(self, spec_obj, hosts, index)

    return _get_sorted_hosts


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
    left: Summaries | None = getattr(host, LEFT, None)
    return host.allocation_candidates[0]["mappings"].summaries if left is None else left


def _choose_again(original: Callable[..., object]) -> Callable[..., Any]:
    """Remove candidates that a host has no room for after a server of the request.

    Nova would claim the first candidate again for the request's next server, although the
    NUMA nodes of the candidate may be full.
    """

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        result = original(self, spec_obj)
        candidates = self.allocation_candidates[:1]
        if has_nodes(next(iter(candidates), None)):
            answer = CandidatesAnswer.unchecked(candidates, _summaries(self))
            after = answer.after(answer.allocation_requests[0])
            setattr(self, LEFT, after.provider_summaries)
            put_best_first(self, spec_obj)
        return result

    return consume_from_request


sort_seam = functools.partial(
    Seam,
    module="nova.scheduler.manager",
    path="SchedulerManager._get_sorted_hosts",
    parameters="self, spec_obj, host_states, index",
)
"""Makes a seam around Nova's function that filters and weighs the hosts for a server."""

SEAMS = (
    sort_seam(
        wrap=_order,
        # Before refused_candidates keeps the candidates of a host.
        layer=2,
    ),
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters="self, spec_obj",
        wrap=_choose_again,
        # Replaces the candidates of a host after scores and numa_fit have consumed the first.
        layer=2,
    ),
)
"""The seams that choose the NUMA nodes of a server among the NUMA nodes of a host."""
