"""Changes a NUMA query of the spec into the query that is sent to Placement.

:func:`cpu_tiers.translators.translate` returns the query in the form of the spec. The form that is
sent names what the root provider of a host tells (:mod:`cpu_tiers.inventory.numa`), so Placement
answers faster, and each server has an allocation of the root provider.
``docs/contributor/numa-queries.rst`` has the measured times; decision D6.
"""

from __future__ import annotations

from collections.abc import Collection

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, count_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators.compose import DISK


def cheaper(query: CandidateQuery) -> CandidateQuery:
    """Return the query in the form that Placement answers fastest, on any database.

    For a server with NUMA nodes:

    * The unsuffixed group requests 1 of ``NUMA_SERVER``, and the disk.
    * The root provider must have as many NUMA nodes as the server.
    * The trait of a NUMA node moves to the group of the node's CPUs: a group less for
      each node.
    * If all suffixed groups belong to nodes, the group policy is ``isolate``: each
      group gets a provider of its own. Placement then leaves out candidates with two
      nodes of the guest on the same NUMA node, on which no guest can be placed. All
      other candidates stay.

    For a server without NUMA nodes, the root provider must not have any. No trait is forbidden in
    the unsuffixed group, because Placement answers 500 to such a query on PostgreSQL.
    """
    if not query.groups:
        return query
    unsuffixed = query.groups[0]
    if NODE_TRAIT in unsuffixed.forbidden and not unsuffixed.suffix:
        forbidden = unsuffixed.forbidden - {NODE_TRAIT, NO_NUMA_TRAIT}
        return query._replace(
            groups=(unsuffixed._replace(forbidden=forbidden), *query.groups[1:]),
            root_forbidden=query.root_forbidden | root_avoided(unsuffixed.forbidden),
        )
    nodes = sum(group.suffix.startswith("_PROC") for group in query.groups)
    return _with_nodes(query, nodes) if nodes else query


def root_avoided(forbidden: Collection[str]) -> frozenset[str]:
    """Return the traits that a root provider must not have, for a server without NUMA nodes.

    :param forbidden: the traits that the spec forbids in the unsuffixed group.
    """
    return frozenset({count_trait(1), *({NO_NUMA_TRAIT} & set(forbidden))})


def _with_nodes(query: CandidateQuery, nodes: int) -> CandidateQuery:
    is_node = frozenset({NODE_TRAIT})
    by_suffix = {group.suffix: group for group in query.groups}
    unsuffixed, disk = (by_suffix.get(suffix, RequestGroup()) for suffix in ("", DISK))
    resources = {**unsuffixed.resources, **disk.resources}
    # A group of only the trait, which the group of the node's CPUs can require as well.
    roots = {
        group.suffix
        for group in query.groups
        if group.required == is_node
        and not group.resources
        and group.suffix.startswith("_NUMA")
        and group.suffix.replace("_NUMA", "_PROC") in by_suffix
    }
    processors = {root.replace("_NUMA", "_PROC") for root in roots}
    groups = [
        group._replace(required=group.required | is_node) if group.suffix in processors else group
        for group in query.groups
        if group.suffix not in roots | {"", DISK}
    ]
    subtrees = tuple(
        tuple(suffix for suffix in suffixes if suffix not in roots)
        for suffixes in query.same_subtree
    )
    of_nodes = {suffix for suffixes in subtrees for suffix in suffixes}
    # Ports and other suffixed groups may share a provider, which isolate would forbid.
    only_nodes = {group.suffix for group in groups} <= of_nodes
    return query._replace(
        # The unsuffixed group, with the disk and the anchor.
        groups=(unsuffixed._replace(resources={**resources, NUMA_SERVER: 1}), *groups),
        same_subtree=subtrees,
        group_policy="isolate" if roots and only_nodes else query.group_policy,
        root_required=query.root_required | {count_trait(nodes)},
    )
