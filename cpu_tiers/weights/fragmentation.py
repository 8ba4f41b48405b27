"""Sorts the candidates of a host by how many of its NUMA nodes they leave fragmented.

Nova claims the first candidate of the chosen host. Spec: numa-topology-with-rps, the note on
``group_policy``. Pure.
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
    """Return the usable candidates, the best candidate of each host first.

    A rule decides only if all rules before it are equal:

    1. the fewest fragmented NUMA nodes; a fragmented node has both used and free CPUs;
    2. the most free CPUs on the NUMA nodes of the candidate; with ``pack``, the fewest;
    3. the largest memory pages, which Nova takes for guests that leave the page size to
       the host: a live migration needs pages of the same size on both hosts;
    4. the order of the answer.

    Hosts keep their order, and so do candidates without NUMA nodes.

    :param pack: Nova's ``packing_host_numa_cells_allocation_strategy``.
    """
    usable = answer.usable()
    host_numbers: dict[str | None, int] = {}
    keyed = []
    for request in usable.allocation_requests:
        # The host of its NUMA nodes, or of its first provider.
        provider = next(iter(request.nodes or request.allocations), None)
        host = provider and answer.provider_summaries[provider]["root_provider_uuid"]
        key = cost_of(request, answer.provider_summaries, pack=pack)
        keyed.append(((host_numbers.setdefault(host, len(host_numbers)), *key), request))
    keyed.sort(key=lambda pair: pair[0])  # stable: rule 4
    return replace(usable, allocation_requests=tuple(request for _, request in keyed))


def cost_of(
    request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]], *, pack: bool
) -> tuple[int, int, int]:
    """Return the numbers of rules 1 to 3 for a candidate; smaller numbers are better.

    :param summaries: the provider summaries of the candidate's answer.
    :param pack: as in :func:`best_first`.
    """
    fragmented = free_cpus = 0
    for node in request.nodes:
        of_class = summaries[node]["resources"]
        present = [of_class[name] for name in _CPUS if name in of_class]
        used = sum(amounts["used"] for amounts in present)
        free = sum(amounts["capacity"] for amounts in present) - used
        taken = sum(request.allocations.get(node, {}).get(name, 0) for name in _CPUS)
        # After the claim the node is fragmented if CPUs stay free. A node that is fragmented
        # already counts -1: filling it up removes a fragmented node of the host.
        fragmented += (free > taken) - (used > 0 and free > 0)
        free_cpus += free
    return fragmented, free_cpus if pack else -free_cpus, -_page_sizes_kb(request, summaries)


def _page_sizes_kb(request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]]) -> int:
    """Return the sum of the page sizes of all nodes; 0 if the answer has no page sizes."""
    groups = (request.mappings.get(f"_MEM{n}", ()) for n in range(1, len(request.nodes) + 1))
    pages = (provider for group in groups for provider in group)
    return sum(page_size_of(summaries[provider]["traits"]) or 0 for provider in pages)
