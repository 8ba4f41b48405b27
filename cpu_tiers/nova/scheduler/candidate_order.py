"""Seams that put the best candidate of each host first, for each server of a request.

Nova's ``SchedulerManager._schedule`` looks for the candidates of a host by the uuid of
the root provider and claims the first candidate.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from nova import objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.nova.candidate_cells import Candidate, Summaries
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.seams import Seam
from cpu_tiers.weights.fragmentation import best_first


def _order(original: Callable[..., Any]) -> Callable[..., Any]:
    """File the candidates of each host under the uuid of its root provider, the best first.

    Nova files a candidate only under the providers that the candidate allocates. A server
    without a disk on the host allocates nothing of the root provider.
    """

    @functools.wraps(original)
    def _select_destinations(
        self: Any,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Any,
        alloc_reqs_by_rp_uuid: dict[str, list[Candidate]] | None,
        provider_summaries: Summaries,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if alloc_reqs_by_rp_uuid and CONF[filter_scheduler.GROUP].query_placement_for_numa:
            filed = itertools.chain.from_iterable(alloc_reqs_by_rp_uuid.values())
            # Each candidate is filed under several providers and cannot be hashed: a dict.
            candidates = {id(candidate): candidate for candidate in filed}.values()
            with refusing("the order of the candidates"):
                alloc_reqs_by_rp_uuid |= by_host(candidates, provider_summaries)
        return original(
            self,
            context,
            spec_obj,
            instance_uuids,
            alloc_reqs_by_rp_uuid,
            provider_summaries,
            *args,
            **kwargs,
        )

    return _select_destinations


def by_host(candidates: Iterable[Candidate], summaries: Summaries) -> dict[str, list[Candidate]]:
    """Return the candidates with NUMA nodes by the root provider of their host, the best first."""
    on_nodes = [candidate for candidate in candidates if has_nodes(candidate)]
    candidates_by_root: dict[str, list[Candidate]] = {}
    for candidate in best_of(on_nodes, CandidatesAnswer.of(on_nodes, summaries)):
        # The root of a node, since a disk pool may be another tree's.
        root = summaries[candidate["mappings"]["_PROC1"][0]]["root_provider_uuid"]
        candidates_by_root.setdefault(root, []).append(candidate)
    return candidates_by_root


def has_nodes(candidate: object) -> bool:
    """Tell whether a candidate has NUMA nodes.

    A candidate has no mappings below microversion 1.34, and Nova's own tests have candidates of
    other types.
    """
    return isinstance(candidate, Mapping) and "_PROC1" in candidate.get("mappings", ())


def best_of(
    candidates: Sequence[Candidate],
    answer: CandidatesAnswer,
    claimable: CandidatesAnswer | None = None,
) -> list[Candidate]:
    """Return the candidates of Nova that can still be claimed, the best first.

    :param answer: an answer with an allocation request for each of ``candidates``.
    :param claimable: the part of ``answer`` that can still be claimed; all of it if not given.
    """
    # Nova claims a candidate as Placement sent it, which is not the form of an AllocationRequest.
    pairs = zip(answer.allocation_requests, candidates, strict=True)
    candidates_by_id = {id(request): candidate for request, candidate in pairs}
    pack = CONF.compute.packing_host_numa_cells_allocation_strategy
    best = best_first(claimable or answer, pack=pack)
    return [candidates_by_id[id(request)] for request in best.allocation_requests]


def _choose_again(original: Callable[..., Any]) -> Callable[..., Any]:
    """Remove candidates that a host has no room for after a server of the request.

    Nova would claim the first candidate again for the request's next server, although the
    NUMA nodes of the candidate may be full.
    """

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        result = original(self, spec_obj)
        candidates = self.allocation_candidates
        # A host state that was not made by _get_all_host_states has no summaries.
        summaries = getattr(self, "provider_summaries", None)
        if summaries and candidates and has_nodes(candidates[0]):
            answer = CandidatesAnswer.of(candidates, summaries)
            claimable = answer.after(answer.allocation_requests[0])
            self.provider_summaries = claimable.provider_summaries
            self.allocation_candidates = best_of(candidates, answer, claimable)
        return result

    return consume_from_request


def select_seam(
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
    *,
    why: str,
    unseen: str,
    layer: int = 0,
) -> Seam:
    """Return a seam around Nova's function that selects hosts after Placement has answered."""
    return Seam(
        module="nova.scheduler.manager",
        path="SchedulerManager._select_destinations",
        parameters=(
            "self",
            "context",
            "spec_obj",
            "instance_uuids",
            "alloc_reqs_by_rp_uuid",
            "provider_summaries",
            "allocation_request_version=None",
            "return_alternates=False",
        ),
        wrap=wrap,
        why=why,
        unseen=unseen,
        layer=layer,
    )


SEAMS = (
    select_seam(
        _order,
        why=(
            "Nova files a candidate under the providers that the candidate allocates, and a "
            "server without a disk allocates nothing of the root provider; the wrapper files "
            "candidates under the root, the best first."
        ),
        unseen=(
            "If Nova looks for the candidates of a host elsewhere, servers without a disk find "
            "no host, or get NUMA nodes that leave gaps."
        ),
        layer=1,
    ),
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters=("self", "spec_obj"),
        wrap=_choose_again,
        why=(
            "Nova would claim the first candidate of the host for the next server of the "
            "request, too, even where its NUMA nodes are full."
        ),
        unseen=(
            "If Nova does not claim the first candidate, or keeps its candidates elsewhere, "
            "some servers of a request for several servers find no room."
        ),
        # Replaces the candidates of a host after scores and numa_fit have consumed the first.
        layer=2,
    ),
)
"""The seams that choose the NUMA nodes of a server among the NUMA nodes of a host."""
