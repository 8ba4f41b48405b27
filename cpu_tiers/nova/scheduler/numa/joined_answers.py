"""Seam that sends all queries for a server in the same call and joins Placement's answers.

The seam also does four things that a query cannot express. It removes candidates with
two guest cells on the same NUMA node of a host, and, for a query that avoids NUMA nodes, those of
hosts whose root provider does not tell its nodes. It reads the network interfaces of the devices
that candidates map the groups of ports to: Neutron's agent reports the provider of a physical
function, and only its name tells the interface. If no host has the pages that a server requests,
the fault of the server says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from nova import exception
from nova.context import RequestContext
from oslo_log import log as logging

from cpu_tiers.errors import Fault
from cpu_tiers.extra_specs.numa import absent_pages
from cpu_tiers.in_time import TimeBudget
from cpu_tiers.model.names import PCPU, interface_of, is_trait
from cpu_tiers.nova import steps
from cpu_tiers.nova.no_answer import NO_ANSWER, read
from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.numa.candidate_cells import Candidate, NodeMappings, Summaries, with_places
from cpu_tiers.nova.protocols import ReportClient, ResourceRequest
from cpu_tiers.nova.scheduler.numa.numa_query import NumaRequest
from cpu_tiers.nova.scheduler.refusal import REASONS
from cpu_tiers.nova.seams import Function
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)

_LOOK = TimeBudget("interfaces of devices", seconds=5.0)

_INTERFACES: dict[str, str | None] = {}
"""The interface by the provider uuid of a device; ``None`` if the name has no interface."""


def _join_answers(
    original: Function, self: ReportClient, context: RequestContext, resources: ResourceRequest
) -> Any:
    """Send the request and its fallbacks, and return the joined answer.

    If a query fails, the candidates of the queries before it are the answer: without cpu-tiers,
    Nova would not have sent the query, and an evacuation without a host puts the server into
    ERROR. Without candidates, the answer is what Nova returns for a failed query.
    """
    numa_request: NumaRequest | None = query_of(resources).numa
    if numa_request is None:
        return original(self, context, resources)
    joined: list[Candidate] = []
    all_summaries: dict[str, Mapping[str, Any]] = {}
    server = numa_request.server
    for request in (resources, *numa_request.fallbacks):
        # Nova alone would not need the answer of a fallback, so it is asked for once more.
        attempts = range(1 if request is resources else 2)
        answers = (_ask(original, self, context, request) for _ in attempts)
        answer = next(filter(None, answers), None)
        if answer is None and not joined:
            return None
        if answer is None:
            break
        candidates, summaries, version = answer
        joined += candidates
        all_summaries |= summaries
    devices, all_groups = numa_request.devices, resources._rg_by_id
    if groups := {suffix: all_groups[suffix] for suffix in devices & all_groups.keys()}:
        # Without the interfaces, as Nova does: a device of any interface.
        _LOOK.do(lambda: read_interfaces(self, context, groups, joined))
        tell_interfaces(groups, joined)
    if not joined and server:
        _explain(self, context, server)
    return joined, all_summaries, version


def _ask(
    original: Function, client: ReportClient, context: RequestContext, resources: ResourceRequest
) -> Any:
    """Return the usable part of Placement's answer; ``None`` for a failed query, as Nova does."""
    try:
        answer = original(client, context, resources)
        # None is a failed connection (Nova's safe_connect), (None, None, None) a refusal. Nova
        # has logged both.
        if answer is not None and answer[0] is not None:
            candidates, summaries, version = answer
            candidates, summaries = _readable(candidates, summaries, query_of(resources).numa)
            return list(candidates), dict(summaries), version
    except NO_ANSWER as error:
        LOG.warning("Placement does not tell the candidates of a query: %r", error)
    return None


def _readable(
    candidates: Sequence[Candidate], summaries: Summaries, numa_request: NumaRequest | None
) -> tuple[Sequence[Candidate], Summaries]:
    """Return the usable part of an answer, without the candidates that cannot be read.

    Nova reads less of a candidate than cpu-tiers: a single malformed candidate is no failed query.
    """
    try:
        return _usable(candidates, summaries, numa_request)
    except NO_ANSWER as error:
        avoided = numa_request.avoided if numa_request else frozenset[str]()
        readable = [each for each in candidates if _is_readable(each, summaries, avoided)]
        if not readable or len(readable) == len(candidates):
            raise
        unread = len(candidates) - len(readable)
        LOG.warning("%d candidates of Placement's answer are malformed: %r", unread, error)
        return _usable(readable, summaries, numa_request)


def _is_readable(candidate: Candidate, summaries: Summaries, avoided: frozenset[str]) -> bool:
    try:
        _roots([candidate], summaries)
        _with_traits([candidate], summaries, avoided)
        with_places(candidate, summaries)
    except NO_ANSWER:
        return False
    return True


def _usable(
    candidates: Sequence[Candidate], summaries: Summaries, numa_request: NumaRequest | None
) -> tuple[Sequence[Candidate], Summaries]:
    """Remove the candidates that a request cannot use from an answer.

    Hosts without other candidates are removed from the summaries, too. A server without NUMA nodes
    costs each host only a look at the traits of its provider.
    """
    if numa_request is None:
        return candidates, summaries
    refused = {
        summary.get("root_provider_uuid")
        for summary in (summaries.values() if numa_request.without_pcpu else ())
        if PCPU in (summary.get("resources") or ())
    }
    avoided = _with_traits(candidates, summaries, numa_request.avoided)
    apart = [
        candidate
        for candidate in candidates
        if (not numa_request.apart or _is_apart(candidate["mappings"], numa_request.apart))
        and (not refused or refused.isdisjoint(_roots([candidate], summaries)))
        and (not avoided or avoided.isdisjoint(candidate["mappings"].get("", ())))
    ]
    placed = [
        with_places(candidate, summaries) if "_PROC1" in candidate["mappings"] else candidate
        for candidate in apart
    ]
    usable = [candidate for candidate in placed if candidate is not None]
    if len(usable) == len(candidates):
        return usable, summaries
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
        if summary.get("root_provider_uuid") not in unusable_roots
    }


def _with_traits(
    candidates: Iterable[Candidate], summaries: Summaries, traits: frozenset[str]
) -> set[str]:
    """Return the providers of the unsuffixed groups of candidates that have one of some traits.

    A provider without a summary has none: stock Nova does not read the mappings.
    """
    if not traits:
        return set()
    providers = {uuid for each in candidates for uuid in each["mappings"].get("", ())}
    return {
        uuid
        for uuid in providers & summaries.keys()
        if not traits.isdisjoint(summaries[uuid].get("traits") or ())
    }


def _is_apart(mappings: Mapping[str, Sequence[str]], apart: Sequence[str]) -> bool:
    providers = [uuid for suffix in apart for uuid in mappings[suffix]]
    return len(set(providers)) == len(providers)


def _roots(candidates: Iterable[Candidate], summaries: Summaries) -> set[str]:
    return {
        summaries[uuid]["root_provider_uuid"]
        for candidate in candidates
        for uuid in candidate["allocations"]
    }


def _explain(client: ReportClient, context: RequestContext, server: ServerRequest) -> None:
    """Raise NoValidHost if no host with NUMA nodes has the pages that a server requests."""

    def fault() -> Fault | None:
        url = "/traits?associated=true"  # only traits that a provider has
        traits = read(client, context, url, version="1.6")["traits"]
        return absent_pages(server.flavor, server.image, traits)

    if server.guest.page_size is not None and (reason := REASONS.do(fault)):
        raise exception.NoValidHost(reason=str(reason))


def read_interfaces(
    client: ReportClient,
    context: RequestContext,
    groups: Mapping[str, Any],
    candidates: Iterable[Candidate],
) -> None:
    """Ask Placement for the interfaces of the devices of candidates with NUMA nodes.

    Nothing is asked if all interfaces are known. The candidates do not change.

    :param groups: Nova's ``RequestGroup`` of each port, by the suffix.
    :raises ValueError: Placement refuses to list the devices.
    :raises keystoneauth1.exceptions.ClientException: Placement does not answer.
    """
    on_nodes = _on_nodes(candidates)
    for suffix, group in groups.items():
        if not {mappings[suffix][0] for mappings in on_nodes} <= _INTERFACES.keys():
            # without "in:A,B" and "!A", which the list of devices does not understand
            traits = ",".join(sorted(filter(is_trait, group.required_traits)))
            query = f"?required={traits}" if traits else ""  # "required" since version 1.18
            answer = read(client, context, f"/resource_providers{query}", version="1.18")
            devices = answer["resource_providers"]
            _INTERFACES.update({it["uuid"]: interface_of(it["name"]) for it in devices})


def tell_interfaces(groups: Iterable[str], candidates: Iterable[Candidate]) -> None:
    """Put the interfaces that are known, by the suffix of the port's group, into the mappings."""
    for mappings in _on_nodes(candidates):
        named = ((suffix, _INTERFACES.get(mappings[suffix][0])) for suffix in groups)
        mappings.interfaces = {suffix: name for suffix, name in named if name is not None}


def _on_nodes(candidates: Iterable[Candidate]) -> list[NodeMappings]:
    return [m for each in candidates if isinstance(m := each["mappings"], NodeMappings)]


SEAM = steps.candidates(_join_answers)
