"""Which of the ways to place a guest's nodes on a host is best.

Nova claims the first one for the host that it chose, so they are put in order.
Spec: numa-topology-with-rps, the note on ``group_policy``. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.model.numa import page_size_of

_CPUS = (VCPU, PCPU)


def best_first(answer: CandidatesAnswer, *, pack: bool = False) -> CandidatesAnswer:
    """Return what a guest can be placed on, of each host the best way first.

    These rules decide, each where those above it are equal:

    1. as few nodes as can be are left fragmented: with CPUs taken, and others free;
    2. the most free CPUs on the nodes that are used; with ``pack``, the least;
    3. the largest pages, as Nova takes them, for guests that leave the size to the
       host: to live-migrate, one needs the same size on both;
    4. the order of the answer.

    Ways without nodes stay as they are. Hosts keep their order, too.

    :param pack: Nova's ``packing_host_numa_cells_allocation_strategy``.
    """
    usable = answer.usable()
    turn: dict[str, int] = {}
    keyed = []
    for request in usable.allocation_requests:
        host = _host(request, answer.provider_summaries)
        key = _cost(request, answer.provider_summaries, pack=pack)
        keyed.append(((turn.setdefault(host, len(turn)), *key), request))
    keyed.sort(key=lambda pair: pair[0])  # stable: equals stay in their order
    return replace(usable, allocation_requests=tuple(request for _, request in keyed))


def _host(request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the root of the nodes, or of any provider where there are none: a host's."""
    provider = next(iter(request.nodes or request.allocations), None)
    return "" if provider is None else str(summaries[provider]["root_provider_uuid"])


def _cost(
    request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]], *, pack: bool
) -> tuple[int, int, int]:
    """Return what rules 1 to 3 make of one way, less for a better one."""
    fragmented = free_cpus = 0
    for node in request.nodes:
        of_class = summaries[node]["resources"]
        present = [of_class[name] for name in _CPUS if name in of_class]
        used = sum(amounts["used"] for amounts in present)
        free = sum(amounts["capacity"] for amounts in present) - used
        taken = sum(request.allocations.get(node, {}).get(name, 0) for name in _CPUS)
        fragmented += (free > taken) - (used > 0 and free > 0)
        free_cpus += free
    return fragmented, free_cpus if pack else -free_cpus, -_page_sizes_kb(request, summaries)


def _page_sizes_kb(request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the page sizes of all nodes together; 0 where the answer does not tell."""
    groups = (request.mappings.get(f"_MEM{n}", ()) for n in range(1, len(request.nodes) + 1))
    pages = (provider for group in groups for provider in group)
    return sum(page_size_of(summaries[provider]["traits"]) or 0 for provider in pages)
