"""Seam: all that is asked for one server is asked at once, and the answers are joined.

What Placement could not be asked is taken out: that two guest nodes are not on
one node of a host. Where nobody can have the pages that a server wants, the
user is told so.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from keystoneauth1.exceptions import ClientException
from nova import exception

from cpu_tiers.extra_specs.page_size import absent_pages
from cpu_tiers.nova import candidate_cells
from cpu_tiers.nova.candidate_cells import Candidate, Summaries
from cpu_tiers.nova.scheduler.numa_groups import asked_of
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)

FEW = 2
"""So many nodes are asked for without a look at how many there are."""


def _join_answers(original: Callable[..., Any]) -> Callable[..., Any]:
    """Ask all that belongs to a request; one that fails is a Placement that is away."""

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        asked = asked_of(resources)
        if asked is None:
            return original(self, context, resources)
        found: list[Candidate] = []
        known: dict[str, Mapping[str, Any]] = {}
        try:
            is_in_vain = asked.server and _is_in_vain(self, context, asked.server)
            for request in asked.others if is_in_vain else (resources, *asked.others):
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
            candidate_cells.learn(self, context, found, known)
            if not found and asked.server:
                _explain(self, context, asked.server)
        except (ClientException, candidate_cells.NodesUnknown) as error:
            LOG.warning("Placement did not tell about NUMA nodes: %s", error)
            return None
        return found, known, version

    return get_allocation_candidates


def _is_in_vain(client: Any, context: Any, server: ServerRequest) -> bool:
    """Tell whether no host reports as many nodes as a server wants.

    Placement finds that out by trying every combination of a host's nodes: for
    5 of them on a host of 4, longer than Nova waits.
    """
    wanted = len(server.nodes)
    return wanted > FEW and wanted > candidate_cells.most_nodes(client, context)


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
    if server.guest.page_size is None:
        return
    traits = candidate_cells.ask(client, context, "/traits?associated=true", version="1.6")[
        "traits"
    ]
    if fault := absent_pages(server.flavor, server.image, traits):
        raise exception.NoValidHost(reason=str(fault))


SEAM = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters=("self", "context", "resources"),
    wrap=_join_answers,
)
"""One answer for all that is asked for a server."""
