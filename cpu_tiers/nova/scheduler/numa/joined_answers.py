"""Seam that sends all queries for a server in the same call and joins Placement's answers.

The seam also does two things that a query cannot express. It removes candidates with
two guest cells on the same NUMA node of a host. If no host has the pages that a
server requests, the fault of the server says so.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from nova import exception

from cpu_tiers.errors import Fault
from cpu_tiers.extra_specs.numa import absent_pages
from cpu_tiers.model.names import PCPU
from cpu_tiers.nova.in_time import REASONS, Beside
from cpu_tiers.nova.no_answer import NO_ANSWER, read
from cpu_tiers.nova.numa.candidate_cells import Candidate, Summaries, with_places
from cpu_tiers.nova.scheduler.numa import port_devices
from cpu_tiers.nova.scheduler.numa.numa_groups import NumaRequest, numa_request_of
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import ServerRequest

if TYPE_CHECKING:
    from cpu_tiers.nova.protocols import ReportClient, ResourceRequest

LOG = logging.getLogger(__name__)

_INTERFACES = Beside("interfaces of devices", seconds=5.0)


def _join_answers(original: Callable[..., object]) -> Callable[..., Any]:
    """Send the request and its fallbacks, and return the joined answer.

    If a query fails, the candidates of the queries before it are the answer: without cpu-tiers,
    Nova would not have sent the query, and an evacuation without a host puts the server into
    ERROR. Without candidates, the answer is what Nova returns for a failed query.
    """

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: ResourceRequest) -> Any:
        numa_request = numa_request_of(resources)
        if numa_request is None:
            return original(self, context, resources)
        joined: list[Candidate] = []
        all_summaries: dict[str, Mapping[str, Any]] = {}
        server = numa_request.server
        requests = (resources, *numa_request.fallbacks)
        for request in requests:
            answer = _ask(original, self, context, request)
            if answer is None and request is not resources:
                # Nova alone would not need this answer, so it is asked for once more.
                answer = _ask(original, self, context, request)
            if answer is None:
                if not joined:
                    return None
                break
            candidates, summaries, version = answer
            joined += candidates
            all_summaries |= summaries
        devices, all_groups = numa_request.devices, resources._rg_by_id
        if groups := {suffix: all_groups[suffix] for suffix in devices & all_groups.keys()}:
            # Without the interfaces, as Nova does: a device of any interface.
            _INTERFACES.do(lambda: port_devices.read_interfaces(self, context, groups, joined))
            port_devices.tell_interfaces(groups, joined)
        if not joined and server:
            _explain(self, context, server)
        return joined, all_summaries, version

    return get_allocation_candidates


def _ask(
    original: Callable[..., Any], client: ReportClient, context: Any, resources: ResourceRequest
) -> Any:
    """Return the usable part of Placement's answer; ``None`` for a failed query, as Nova does."""
    try:
        answer = original(client, context, resources)
        # None is a failed connection (Nova's safe_connect), (None, None, None) a refusal. Nova
        # has logged both.
        if answer is not None and answer[0] is not None:
            candidates, summaries, version = answer
            candidates, summaries = _usable(candidates, summaries, numa_request_of(resources))
            return list(candidates), dict(summaries), version
    except NO_ANSWER as error:
        LOG.warning("Placement does not tell the candidates of a query: %r", error)
    return None


def _usable(
    candidates: Sequence[Candidate], summaries: Summaries, numa_request: NumaRequest | None
) -> tuple[Sequence[Candidate], Summaries]:
    """Remove the candidates that a request cannot use from an answer.

    Hosts without other candidates are removed from the summaries, too.
    """
    if numa_request is None:
        return candidates, summaries
    refused = _roots_with_pcpu(summaries) if numa_request.without_pcpu else frozenset()
    apart = [
        candidate
        for candidate in candidates
        if _is_apart(candidate["mappings"], numa_request.apart)
        and not refused & _roots([candidate], summaries)
    ]
    placed = [with_places(candidate, summaries) for candidate in apart]
    usable = [candidate for candidate in placed if candidate is not None]
    # Nova's _get_all_host_states makes a host state of every provider in the summaries.
    unusable_roots = _roots(candidates, summaries) - _roots(usable, summaries)
    if unusable_roots and len(usable) < len(apart):
        LOG.warning(
            "No trait of the NUMA nodes of %s tells the host cell: the hosts get no server with"
            " NUMA nodes until their nova-compute is started again",
            ", ".join(sorted(unusable_roots & _roots(apart, summaries))),
        )
    return usable, {
        uuid: summary
        for uuid, summary in summaries.items()
        if summary["root_provider_uuid"] not in unusable_roots
    }


def _is_apart(mappings: Mapping[str, Sequence[str]], apart: Sequence[str]) -> bool:
    providers = [uuid for suffix in apart for uuid in mappings[suffix]]
    return len(set(providers)) == len(providers)


def _roots_with_pcpu(summaries: Summaries) -> frozenset[str]:
    """Return the root providers of the hosts that report PCPU."""
    return frozenset(
        summary["root_provider_uuid"]
        for summary in summaries.values()
        if PCPU in summary["resources"]
    )


def _roots(candidates: Iterable[Candidate], summaries: Summaries) -> set[str]:
    return {
        summaries[uuid]["root_provider_uuid"]
        for candidate in candidates
        for uuid in candidate["allocations"]
    }


def _explain(client: ReportClient, context: Any, server: ServerRequest) -> None:
    """Raise an error if no host that reports NUMA nodes has the pages that a server requests.

    :raises NoValidHost: with the page sizes of the hosts in the reason.
    """
    if server.guest.page_size is None:
        return
    if fault := REASONS.do(lambda: _absent_pages(client, context, server)):
        raise exception.NoValidHost(reason=str(fault))


def _absent_pages(client: ReportClient, context: Any, server: ServerRequest) -> Fault | None:
    url = "/traits?associated=true"  # only traits that a provider has
    traits = read(client, context, url, version="1.6")["traits"]
    return absent_pages(server.flavor, server.image, traits)


SEAM = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters="self, context, resources",
    wrap=_join_answers,
    layer=1,  # sends several queries, and custom_names creates the names of each query
)
"""The seam around the query for allocation candidates."""
