"""Seams: what Nova claims of a host is its best candidate, for each server of a request.

Nova claims the first candidate that it has for a host, and looks for them under
the uuid of its root.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from nova import objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.nova.candidate_cells import Candidate, Summaries
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam
from cpu_tiers.weights.fragmentation import best_first


def _order(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have Nova find the candidates of each host under its root, the best first."""

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
            by_id = {id(one): one for some in alloc_reqs_by_rp_uuid.values() for one in some}
            alloc_reqs_by_rp_uuid |= by_host(by_id.values(), provider_summaries)
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
    """Return the candidates that name nodes by the root of these, on each host the best first."""
    on_nodes = [one for one in candidates if _names_nodes(one)]
    found: dict[str, list[Candidate]] = {}
    for one in _best_first(on_nodes, CandidatesAnswer.of(on_nodes, summaries)):
        root = summaries[one["mappings"]["_PROC1"][0]]["root_provider_uuid"]
        found.setdefault(root, []).append(one)
    return found


def _names_nodes(candidate: Candidate) -> bool:
    return "_PROC1" in candidate["mappings"]


def _best_first(
    candidates: Sequence[Candidate],
    answer: CandidatesAnswer,
    left: CandidatesAnswer | None = None,
) -> list[Candidate]:
    """Return Nova's own candidates in the order of what can be claimed.

    :param answer: the candidates, as ours.
    :param left: that, without some.
    """
    novas = {
        id(ours): one for ours, one in zip(answer.allocation_requests, candidates, strict=True)
    }
    pack = CONF.compute.packing_host_numa_cells_allocation_strategy
    best = best_first(left or answer, pack=pack)
    return [novas[id(ours)] for ours in best.allocation_requests]


def _choose_again(original: Callable[..., Any]) -> Callable[..., Any]:
    """Leave a host what is still to be had when a server of the request took its nodes.

    Nova would claim the same nodes for the next server, too.
    """

    @functools.wraps(original)
    def consume_from_request(self: Any, spec_obj: objects.RequestSpec) -> Any:
        result = original(self, spec_obj)
        candidates = self.allocation_candidates
        if candidates and _names_nodes(candidates[0]):
            answer = CandidatesAnswer.of(candidates, self.provider_summaries)
            left = answer.after(answer.allocation_requests[0])
            self.provider_summaries = left.provider_summaries
            self.allocation_candidates = _best_first(candidates, answer, left)
        return result

    return consume_from_request


def select_seam(wrap: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Seam:
    """Return a seam around what finds hosts for a request, once Placement has answered."""
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
            "allocation_request_version",
            "return_alternates",
        ),
        wrap=wrap,
    )


SEAMS = (
    select_seam(_order),
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters=("self", "spec_obj"),
        wrap=_choose_again,
    ),
)
"""The nodes of a server are the best ones of a host."""
