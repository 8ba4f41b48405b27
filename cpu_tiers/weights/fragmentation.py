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
    """Return the usable candidates, the best candidate of each host first (:func:`cost_of`).

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
    keyed.sort(key=lambda pair: pair[0])  # stable: equals keep the order of the answer
    return replace(usable, allocation_requests=tuple(request for _, request in keyed))


def cost_of(
    request: AllocationRequest, summaries: Mapping[str, Mapping[str, Any]], *, pack: bool
) -> tuple[int, int, int]:
    """Return the numbers by which candidates of a host are compared, the first number first.

    They are fragmented NUMA nodes, which have both used and free CPUs; CPUs that are free on the
    nodes of the candidate, or not with ``pack``; and the sizes of its memory pages: Nova takes the
    largest for guests that leave the size to the host, and a live migration needs the same size
    on both hosts. Smaller numbers are better.

    :param summaries: the provider summaries of the candidate's answer.
    :param pack: as in :func:`best_first`.
    """
    fragmented = free_cpus = 0
    for node in request.nodes:
        class_amounts = summaries[node]["resources"]
        present = [class_amounts[name] for name in _CPUS if name in class_amounts]
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
