"""Changes a NUMA query into an equivalent query that Placement answers faster.

:func:`cpu_tiers.translators.translate` returns the query in the form of the spec.
``docs/numa-queries.rst`` has the measured times; decision D6.
"""

from __future__ import annotations

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU, VCPU_SHARES, host_traits
from cpu_tiers.model.numa import large_pages_trait, no_numa_trait, node_trait, small_pages_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.translators.shared_disk import DISK, with_disk_apart

HOST = "_HOST"
"""The suffix of the group that the root provider of a host without NUMA nodes serves."""

ROOT = "_ROOT"
"""The suffix of the group that requests only traits and aggregates of a host's root provider."""

_CPUS = (VCPU, PCPU, VCPU_SHARES)
_ON_ROOT = frozenset({*_CPUS, MEMORY_MB})


def cheaper(query: CandidateQuery) -> CandidateQuery:
    """Return the query in the form that Placement answers fastest, on any database.

    * The trait of a NUMA node moves to the group of the node's CPUs: a group less for
      each node.
    * If all suffixed groups belong to nodes, the group policy is ``isolate``: each
      group gets a provider of its own. Placement then leaves out candidates with two
      nodes of the guest on the same NUMA node, on which no guest can be placed. All
      other candidates stay.
    * No trait is forbidden in the unsuffixed group, because Placement answers 500 to
      such a query on PostgreSQL. Instead a suffixed group requests the resources of a
      host without NUMA nodes from a provider that is neither a NUMA node nor the pages
      of a node.
    """
    if node_trait() in query.groups[0].forbidden and not query.groups[0].suffix:
        return _of_one_provider(query)
    return _with_fewer_groups(query)


def fast_form(query: CandidateQuery) -> CandidateQuery:
    """Return the form that Placement answers fastest, where the form is equivalent.

    The fast form moves the trait of a NUMA node to the group of its CPUs, so there must be one.
    """
    suffixes = {group.suffix for group in query.groups}
    nodes = (suffix for suffix in suffixes if suffix.startswith("_NUMA"))
    has_cpus = all(node.replace("_NUMA", "_PROC") in suffixes for node in nodes)
    return cheaper(query) if query.groups and has_cpus else query


def _with_fewer_groups(query: CandidateQuery) -> CandidateQuery:
    is_node = frozenset({node_trait()})
    # A group _PROC has no resources either if its node has no vCPUs.
    roots = {
        group.suffix
        for group in query.groups
        if group.required == is_node and not group.resources and group.suffix.startswith("_NUMA")
    }
    processors = {root: root.replace("_NUMA", "_PROC") for root in roots}
    groups = tuple(
        group._replace(required=group.required | is_node)
        if group.suffix in processors.values()
        else group
        for group in query.groups
        if group.suffix not in roots
    )
    subtrees = tuple(
        tuple(suffix for suffix in suffixes if suffix not in roots)
        for suffixes in query.same_subtree
    )
    of_nodes = {suffix for suffixes in subtrees for suffix in suffixes}
    suffixes = {group.suffix for group in groups if group.suffix}
    # Ports and other suffixed groups may share a provider, which isolate would forbid. No node
    # serves _DISK, but a root provider may serve both _DISK and _ROOT.
    only_nodes = suffixes - {DISK} <= of_nodes and not suffixes >= {DISK, ROOT}
    return query._replace(
        groups=groups,
        same_subtree=subtrees,
        group_policy="isolate" if roots and only_nodes else query.group_policy,
    )


def _of_one_provider(query: CandidateQuery) -> CandidateQuery:
    unsuffixed, *others = query.groups
    own_traits = unsuffixed._replace(
        forbidden=unsuffixed.forbidden - {node_trait(), no_numa_trait()}
    )
    divided = host_and_rest(own_traits)
    # With isolate, the provider of _HOST could not serve any other group of the query.
    if divided is None or query.group_policy == "isolate":
        return query
    host, rest = divided
    groups = (*([with_disk_apart(rest)] if rest.resources else []), host, *others)
    several = sum(bool(group.suffix) for group in groups) > 1
    return query._replace(
        groups=groups,
        group_policy="none" if several else query.group_policy,
        root_forbidden=query.root_forbidden | unsuffixed.forbidden & {no_numa_trait()},
    )


def host_and_rest(unsuffixed: RequestGroup) -> tuple[RequestGroup, RequestGroup] | None:
    """Divide the unsuffixed group into a group for hosts without NUMA nodes and the rest.

    No host with NUMA nodes can serve the first group. CPUs, memory and all traits of the
    unsuffixed group move to the first group. There is an exception: if the rest requests
    a device, or a disk together with traits that may describe a storage pool, only the
    memory and the traits that only hosts have move to the first group. The remaining
    traits may then be traits of any provider.

    :returns: both groups; ``None`` if the unsuffixed group requests neither CPUs nor
        memory.
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
    host = unsuffixed._replace(
        suffix=HOST,
        resources={name: resources[name] for name in moved},
        required=required,
        forbidden=forbidden | of_nodes,
    )
    rest = unsuffixed._replace(
        resources={name: n for name, n in resources.items() if name not in moved},
        required=unsuffixed.required - required,
        forbidden=unsuffixed.forbidden - forbidden,
    )
    return host, rest
