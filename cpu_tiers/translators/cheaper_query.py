"""An equal NUMA query that costs Placement less than the spec's own form.

Decision D6; ``docs/numa-queries.rst`` has the measured times. ``translate``
returns the spec's form.
"""

from __future__ import annotations

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU, VCPU_SHARES, host_traits
from cpu_tiers.model.numa import large_pages_trait, no_numa_trait, node_trait, small_pages_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup

HOST = "_HOST"
"""The group of what a host without NUMA nodes has on its root."""

_CPUS = (VCPU, PCPU, VCPU_SHARES)
_ON_ROOT = frozenset({*_CPUS, MEMORY_MB})


def cheaper(query: CandidateQuery) -> CandidateQuery:
    """Return the query in the form that Placement answers fastest, on any database.

    * The trait of a node stands in the group of its CPUs: one group less for each.
    * Where all groups are those of nodes, each gets a provider of its own
      (``isolate``). So Placement leaves out what no guest can be placed on:
      two of its nodes on one of the host. All others are the same as before.
    * No trait is forbidden in the unsuffixed group, which is an error of
      Placement's on PostgreSQL: what the root of a host without NUMA nodes
      has is asked of one provider that is neither a node nor its pages.
    """
    if node_trait() in query.groups[0].forbidden and not query.groups[0].suffix:
        return _of_one_provider(query)
    return _with_fewer_groups(query)


def _with_fewer_groups(query: CandidateQuery) -> CandidateQuery:
    is_node = frozenset({node_trait()})
    roots = {
        group.suffix for group in query.groups if group.required == is_node and not group.resources
    }
    processors = {root: root.replace("_NUMA", "_PROC") for root in roots}
    groups = tuple(
        group._replace(required=group.required | is_node)
        if group.suffix in processors.values()
        else group
        for group in query.groups
        if group.suffix not in roots
    )
    subtrees = tuple(tuple(s for s in one if s not in roots) for one in query.same_subtree)
    of_nodes = {suffix for one in subtrees for suffix in one}
    only_nodes = all(group.suffix in of_nodes for group in groups if group.suffix)
    return query._replace(
        groups=groups,
        same_subtree=subtrees,
        group_policy="isolate" if roots and only_nodes else query.group_policy,
    )


def _of_one_provider(query: CandidateQuery) -> CandidateQuery:
    unsuffixed, *others = query.groups
    asked = unsuffixed._replace(forbidden=unsuffixed.forbidden - {node_trait(), no_numa_trait()})
    divided = host_and_rest(asked)
    if divided is None or query.group_policy == "isolate":
        return query  # which would keep _HOST from groups that its provider serves, too
    host, rest = divided
    return query._replace(
        groups=(*([rest] if rest.resources else []), host, *others),
        group_policy="none" if any(group.suffix for group in others) else query.group_policy,
        root_forbidden=query.root_forbidden | unsuffixed.forbidden & {no_numa_trait()},
    )


def host_and_rest(unsuffixed: RequestGroup) -> tuple[RequestGroup, RequestGroup] | None:
    """Return a group that no host with NUMA nodes can serve, and what is left of this one.

    CPUs and memory go to the first one, with the traits. But where a device is
    left, or a disk and traits that may be its pool's, memory goes alone, with
    the traits that only hosts have: the others may be of any provider.

    :returns: ``None`` where neither CPUs nor memory are asked for.
    """
    resources = unsuffixed.resources
    moved = [name for name in resources if name in _ON_ROOT]
    if not moved:
        return None
    required, forbidden = unsuffixed.required, unsuffixed.forbidden
    if resources.keys() - _ON_ROOT:
        required, forbidden = host_traits(required), host_traits(forbidden)
    others = (unsuffixed.required | unsuffixed.forbidden) - required - forbidden
    if others or resources.keys() - _ON_ROOT - {DISK_GB}:
        moved = [MEMORY_MB] if MEMORY_MB in moved else moved[:1]
    of_nodes = {node_trait()}
    if not any(name in _CPUS for name in moved):
        of_nodes = {small_pages_trait(), large_pages_trait()}
    host = RequestGroup(
        HOST, {name: resources[name] for name in moved}, required, forbidden | of_nodes
    )
    rest = unsuffixed._replace(
        resources={name: n for name, n in resources.items() if name not in moved},
        required=unsuffixed.required - required,
        forbidden=unsuffixed.forbidden - forbidden,
    )
    return host, rest
