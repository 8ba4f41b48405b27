"""Seams: the answers for one server are joined, and what Nova claims of a host is the best.

Nova claims the first candidate that it has for a host, and looks for them under
the uuid of its root.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from keystoneauth1.exceptions import ClientException
from nova import exception, objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.numa import SIZE_TRAIT, page_size_of
from cpu_tiers.nova.numa import places
from cpu_tiers.nova.numa.groups import asked_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import ServerRequest
from cpu_tiers.weights.nodes import best_first

LOG = logging.getLogger(__name__)

Candidate = Mapping[str, Any]
Summaries = Mapping[str, Mapping[str, Any]]


def _join_answers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Ask all that belongs to a request; one that fails is a Placement that is away."""

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        asked = asked_of(resources)
        if asked is None:
            return original(self, context, resources)
        found: list[Candidate] = []
        known: dict[str, Mapping[str, Any]] = {}
        for request in (resources, *asked.others):
            answer = original(self, context, request)
            if answer is None or answer[0] is None:
                return answer
            candidates, summaries, version = answer
            of_this = asked_of(request)
            candidates, summaries = _usable(
                candidates, summaries, of_this.apart if of_this else ()
            )
            found += candidates
            known |= summaries
        try:
            places.learn(self, context, found, known)
            if not found and asked.server:
                _explain(self, context, asked.server)
        except (ClientException, places.NodesUnknown) as error:
            LOG.warning("Placement did not tell about NUMA nodes: %s", error)
            return None
        return found, known, version

    return get_allocation_candidates


def _usable(
    candidates: Sequence[Candidate], summaries: Summaries, apart: Sequence[str]
) -> tuple[Sequence[Candidate], Summaries]:
    """Return the answer without candidates in which one provider serves two of the groups.

    Hosts that have nothing else are left out.
    """
    kept = [one for one in candidates if _is_apart(one["mappings"], apart)]
    if len(kept) == len(candidates):
        return candidates, summaries
    gone = _roots(candidates, summaries) - _roots(kept, summaries)
    return kept, {
        uuid: summary
        for uuid, summary in summaries.items()
        if summary["root_provider_uuid"] not in gone
    }


def _is_apart(mappings: Mapping[str, Sequence[str]], apart: Sequence[str]) -> bool:
    providers = [uuid for suffix in apart for uuid in mappings[suffix]]
    return len(set(providers)) == len(providers)


def _roots(candidates: Iterable[Candidate], summaries: Summaries) -> set[str]:
    return {
        summaries[uuid]["root_provider_uuid"] for one in candidates for uuid in one["allocations"]
    }


def _explain(client: Any, context: Any, server: ServerRequest) -> None:
    """Say so where no host has pages of the size that a server wants.

    :raises NoValidHost: no host that reports its nodes has such pages.
    """
    size_kb = server.guest.page_size
    if not isinstance(size_kb, int):
        return
    url = f"/traits?name=startswith:{SIZE_TRAIT}&associated=true"
    response = client.get(url, version="1.6", global_request_id=context.global_id)
    if response.status_code != 200:
        raise places.NodesUnknown(f"{response.status_code} {response.text}")
    sizes = {page_size_of([name]) for name in response.json()["traits"]} - {None}
    if not sizes or size_kb in sizes:
        return
    there = ", ".join(map(str, sorted(size for size in sizes if size)))
    raise exception.NoValidHost(
        reason=f"flavor {server.flavor.name}: memory is asked for in pages of {size_kb} kB. Of "
        f"the hosts that report their NUMA nodes none has any, but pages of {there} kB; of those "
        "that report none it is not known, but none has room for the server"
    )


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
        allocation_request_version: str | None = None,
        return_alternates: bool = False,
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
            allocation_request_version,
            return_alternates,
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


SEAMS = (
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.get_allocation_candidates",
        parameters=("self", "context", "resources"),
        wrap=_join_answers,
    ),
    Seam(
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
        wrap=_order,
    ),
    Seam(
        module="nova.scheduler.host_manager",
        path="HostState.consume_from_request",
        parameters=("self", "spec_obj"),
        wrap=_choose_again,
    ),
)
"""One answer for all that is asked for a server; its nodes are on the best ones of a host."""
