"""NUMA: from the NUMA nodes of a guest to request groups.

Node 0 of the guest becomes the groups ``_PROC1`` (CPUs), ``_MEM1`` (memory, with the
trait of its pages) and ``_NUMA1`` (the trait of a NUMA node), which must be in the same
subtree. Node 1 becomes ``_PROC2`` and so on. Spec: numa-topology-with-rps, from "Asking
for NUMA-aware vCPUs" on; decision D6.

:func:`cheaper` changes this query of the spec into the query that is sent to Placement. The sent
form names what the root provider of a host tells (:mod:`cpu_tiers.inventory.cpus`), so Placement
answers faster, and each server has an allocation of the root provider.
``docs/contributor/numa-queries.rst`` has the measured times.
"""

from collections.abc import Collection, Iterable
from itertools import chain

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.extra_specs.numa import PAGE_SIZE, GuestNode
from cpu_tiers.model.names import MEMORY_MB, NUMA_SERVER, PCPU, VCPU
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT, count_trait, page_trait
from cpu_tiers.model.request import CandidateQuery, RequestGroup, SameSubtree
from cpu_tiers.translators.compose import DISK
from cpu_tiers.translators.contract import ServerRequest

OF_A_NODE = frozenset({VCPU, PCPU, MEMORY_MB})
"""The resource classes of NUMA nodes: no other group of such a query requests them."""


def translate(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of each node, or the traits that a host must not have.

    :raises InvalidInput: the memory of a node is not a multiple of the page size, or
        amounts of the flavor differ from the sum of its nodes. Not for a server that exists.
    """
    if server.as_fallback:
        return [RequestGroup(forbidden=frozenset({NODE_TRAIT, NO_NUMA_TRAIT}))]
    if not server.query_numa:
        return []
    if not server.nodes:
        return [RequestGroup(forbidden=frozenset({NODE_TRAIT}))]
    # Without amounts of the flavor itself and without pages of a size, nothing can contradict.
    may_differ = server.own_groups.groups or isinstance(server.guest.page_size, int)
    if server.existing is None and may_differ:
        _check(server)
    isolate = server.own_groups.group_policy == "isolate"
    return [
        part
        for number, node in enumerate(server.nodes, start=1)
        for part in _of_node(server, number, node, isolate=isolate)
    ]


def _of_node(
    server: ServerRequest, number: int, node: GuestNode, *, isolate: bool
) -> Iterable[RequestGroup | SameSubtree]:
    """Yield the groups of a node.

    :param isolate: whether each group gets a provider of its own. The trait and the
        CPUs of a node are then in the same group, because the same provider has both.
    """
    # The suffixes of the spec, which count from 1; guest nodes count from 0.
    memory, processors, root = f"_MEM{number}", f"_PROC{number}", f"_NUMA{number}"
    is_node, pages = frozenset({NODE_TRAIT}), page_trait(server.guest.page_size)
    # Only a server that exists has a node without memory, or without vCPUs (decision D79).
    page_groups = (memory,) if node.memory_mb else ()
    if page_groups:
        required = frozenset() if pages is None else frozenset({pages})
        yield RequestGroup(memory, {MEMORY_MB: node.memory_mb}, required)
    # Isolated emulator threads take their PCPU from node 0 of the guest (decision D5).
    shared, emulator = server.shared_of(node), server.cpus.emulator if number == 1 else 0
    amounts = {VCPU: shared, PCPU: len(node.cpus) - shared + emulator}
    cpus = {name: amount for name, amount in amounts.items() if amount}
    if isolate or not cpus:
        yield RequestGroup(processors, cpus, is_node)
        yield SameSubtree((*page_groups, processors))
    else:
        yield RequestGroup(processors, cpus)
        yield RequestGroup(root, required=is_node)
        yield SameSubtree((*page_groups, processors, root))


def with_vcpu(
    server: ServerRequest, parts: Iterable[RequestGroup | SameSubtree]
) -> Iterable[RequestGroup | SameSubtree]:
    """Yield the groups of a server with VCPU in place of PCPU, for hosts that report no PCPU.

    Such a host has no ``[compute] cpu_dedicated_set``, and Nova pins servers to any CPUs of the
    host. As in the second query of Nova, isolated emulator threads request nothing.

    :param server: a server of which all vCPUs are dedicated.
    :param parts: what :func:`translate` has returned for the server.
    """
    cpus = {f"_PROC{number}": len(node.cpus) for number, node in enumerate(server.nodes, 1)}
    for part in parts:
        if isinstance(part, RequestGroup) and PCPU in part.resources:
            yield part._replace(resources={VCPU: cpus[part.suffix]})
        else:
            yield part


def own_groups(server: ServerRequest) -> OwnGroups:
    """Return the flavor's own groups, without the amounts that the groups of nodes request.

    ``resources:VCPU`` and ``resources:PCPU`` decide how many vCPUs are dedicated. The
    groups of the nodes request these CPUs.
    """
    own_groups = server.own_groups
    if not server.nodes:
        return own_groups
    groups = (
        group._replace(resources={c: n for c, n in group.resources.items() if c not in OF_A_NODE})
        for group in own_groups.groups
    )
    return OwnGroups(
        groups=tuple(group for group in groups if group.resources or group.has_traits),
        # Placement demands a policy if there are two suffixed groups, and nodes have several.
        group_policy=own_groups.group_policy or "none",
    )


def _check(server: ServerRequest) -> None:
    """Refuse memory of a part of a page, and amounts that are not those of the nodes."""
    faults = FaultList()
    size_kb, cpus = server.guest.page_size, server.cpus
    for number, node in enumerate(server.nodes):
        if isinstance(size_kb, int) and node.memory_mb * 1024 % size_kb:
            faults.add(
                f"flavor {server.flavor.name}, NUMA node {number}",
                f"{node.memory_mb} MiB: not a multiple of the page size of {size_kb} kB",
                f"change the memory of the node, or {PAGE_SIZE}",
            )
    requested = {
        VCPU: cpus.shared,
        PCPU: cpus.dedicated + cpus.emulator,
        MEMORY_MB: server.flavor.memory_mb,
    }
    for name, amount in requested.items():
        stated = server.own_groups.amount(name)
        if stated not in (None, amount):
            faults.add(
                f"flavor {server.flavor.name}, resources:{name}",
                f"{stated}, but its NUMA nodes have {amount}",
                "remove it: an amount of the flavor cannot be divided among the nodes",
            )
    faults.raise_if_any()


def cheaper(query: CandidateQuery) -> CandidateQuery:
    """Return the query in the form that Placement answers fastest, on any database.

    For a server with NUMA nodes:

    * The unsuffixed group requests 1 of ``NUMA_SERVER``, and the disk.
    * The root provider must have as many NUMA nodes as the server.
    * The trait of a NUMA node moves to the group of the node's CPUs: a group less for each node.
    * If all suffixed groups belong to nodes, the group policy is ``isolate``: each group gets a
      provider of its own. Placement then leaves out candidates with two nodes of the guest on the
      same NUMA node, on which no guest can be placed. All other candidates stay.

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


def read_form(query: CandidateQuery) -> CandidateQuery:
    """Return the query of :func:`cheaper`, with what the answer to it is searched for.

    A tree with NUMA nodes that a release before the traits of root providers has reported is in
    Placement's answer for a server without NUMA nodes: nova-scheduler leaves these candidates out.
    The cloud in memory answers the query with the trait that the unsuffixed group must not have.
    """
    sent = cheaper(query)
    if not (avoided := avoided_by(query)):
        return sent
    first, *others = sent.groups
    first = first._replace(forbidden=first.forbidden | avoided)
    return sent._replace(groups=(first, *others))


def avoided_by(query: CandidateQuery) -> frozenset[str]:
    """Return the traits that a query in the form of the spec forbids for NUMA nodes."""
    first = query.groups[0] if query.groups else RequestGroup()
    return frozenset({NODE_TRAIT} & first.forbidden if not first.suffix else ())


def root_avoided(forbidden: Collection[str]) -> frozenset[str]:
    """Return the traits that a root provider must not have, for a server without NUMA nodes.

    :param forbidden: the traits that the spec forbids in the unsuffixed group.
    """
    return frozenset({count_trait(1), *({NO_NUMA_TRAIT} & set(forbidden))})


def _with_nodes(query: CandidateQuery, nodes: int) -> CandidateQuery:
    is_node = frozenset({NODE_TRAIT})
    groups = {group.suffix: group for group in query.groups}
    unsuffixed, disk = (groups.pop(suffix, RequestGroup()) for suffix in ("", DISK))
    anchored = {**unsuffixed.resources, **disk.resources, NUMA_SERVER: 1}
    # A group of only the trait, which the group of the node's CPUs can require as well.
    roots = [
        suffix
        for suffix, group in groups.items()
        if suffix.startswith("_NUMA")
        and suffix.replace("_NUMA", "_PROC") in groups
        and group == RequestGroup(suffix, required=is_node)
    ]
    for root in roots:
        processors = groups[groups.pop(root).suffix.replace("_NUMA", "_PROC")]
        required = processors.required | is_node
        groups[processors.suffix] = processors._replace(required=required)
    subtrees = tuple(tuple(filter(groups.__contains__, tree)) for tree in query.same_subtree)
    # Ports and other suffixed groups may share a provider, which isolate would forbid.
    only_nodes = roots and groups.keys() <= set(chain.from_iterable(subtrees))
    return query._replace(
        groups=(unsuffixed._replace(resources=anchored), *groups.values()),
        same_subtree=subtrees,
        group_policy="isolate" if only_nodes else query.group_policy,
        root_required=query.root_required | {count_trait(nodes)},
    )
