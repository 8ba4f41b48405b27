"""All queries that nova-scheduler sends for a server, with what Nova's request filters add.

Nova's filters require and forbid traits of the root provider, and demand aggregates. Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple

from cpu_tiers.extra_specs.host_traits import traits_for_cpus, traits_for_weight
from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators import BUILT_IN, ServerRequest, Translator, fallback, translate
from cpu_tiers.translators.novas_traits import DISABLED, novas_traits


class SchedulerOptions(NamedTuple):
    """Options of nova.conf that decide about the queries.

    :param image_metadata_prefilter: of ``[scheduler]``.
    :param disable_fallback_pcpu_query: of ``[workarounds]``.
    :param require_host_traits: of ``[filter_scheduler]``.
    :param extend_cpu_policies: of ``[compute]``.
    """

    image_metadata_prefilter: bool = False
    disable_fallback_pcpu_query: bool = False
    require_host_traits: bool = False
    extend_cpu_policies: bool = False


DEFAULTS = SchedulerOptions()


class ServerQueries(NamedTuple):
    """The queries for a server.

    :param first: a host with a candidate of any of these queries is enough.
    :param otherwise: the queries that nova-scheduler sends if ``first`` have no candidate: a
        server with dedicated CPUs may go to a host that reports no PCPU.
    """

    first: tuple[CandidateQuery, ...]
    otherwise: tuple[CandidateQuery, ...] = ()


def server_queries(
    server: ServerRequest,
    translators: Mapping[str, Translator] = BUILT_IN,
    options: SchedulerOptions = DEFAULTS,
    member_of: frozenset[frozenset[str]] = frozenset(),
) -> ServerQueries:
    """Return the queries for a server that is going to be created.

    :param member_of: sets of aggregates; the host must be in an aggregate of each set.
    :raises InvalidInput: with every fault of flavor, image and ports.
    :raises ExtensionError: two translators claim the same class.
    """
    required = _required(server, options)
    own, numa_fallback = translate(server, translators), fallback(server, translators)
    queries = (own,) if numa_fallback is None else (own, numa_fallback)
    filtered = tuple(
        _in_aggregates(
            query._replace(
                root_required=query.root_required | required,
                root_forbidden=query.root_forbidden | {DISABLED},
            ),
            member_of,
        )
        for query in queries
    )
    is_pinned = server.guest.policy == "dedicated" and server.own_groups.amount(PCPU) is None
    if server.nodes or not is_pinned or options.disable_fallback_pcpu_query:
        return ServerQueries(filtered)
    return ServerQueries(filtered, tuple(_as_vcpu(query, server) for query in filtered))


def _required(server: ServerRequest, options: SchedulerOptions) -> frozenset[str]:
    flavor, image = server.flavor, server.image
    required = novas_traits(
        flavor, image, image_metadata_prefilter=options.image_metadata_prefilter
    )
    if options.require_host_traits and server.query_vcpu_shares:
        required |= traits_for_weight(flavor)
    if options.require_host_traits and options.extend_cpu_policies:
        required |= traits_for_cpus(flavor, image)
    return required


def _in_aggregates(query: CandidateQuery, member_of: frozenset[frozenset[str]]) -> CandidateQuery:
    """Return the query for a host in aggregates: as by Nova, those of the unsuffixed group."""
    if not member_of:
        return query
    first, *others = query.groups
    if first.suffix:  # a server with NUMA nodes, which has the anchor in the query that is sent
        first, others = RequestGroup(), [first, *others]
    return query._replace(groups=(first._replace(member_of=member_of), *others))


def _as_vcpu(query: CandidateQuery, server: ServerRequest) -> CandidateQuery:
    """Return the second query of Nova: all CPUs as VCPU, without emulator threads."""

    def changed(group: RequestGroup) -> RequestGroup:
        if group.suffix or PCPU not in group.resources:
            return group
        others = {name: n for name, n in group.resources.items() if name != PCPU}
        return group._replace(resources={VCPU: server.flavor.vcpus, **others})

    return query._replace(groups=tuple(map(changed, query.groups)))
