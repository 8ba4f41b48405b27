"""NUMA: from a guest's nodes to request groups, one or more for each node.

Spec: numa-topology-with-rps, "Asking for NUMA-aware vCPUs" and what follows;
decision D6. Guest node 0 becomes the groups ``_PROC1`` (CPUs), ``_MEM1`` (memory,
with the trait of its pages) and ``_NUMA1`` (the trait of a node), all of one
subtree; the others follow.
"""

from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.extra_specs.page_size import KEY as PAGE_SIZE
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.numa import no_numa_trait, node_trait, page_trait
from cpu_tiers.model.request import RequestGroup, SameSubtree
from cpu_tiers.translators.contract import ServerRequest, already_requested_by

OF_A_NODE = (VCPU, PCPU, MEMORY_MB)
"""What is claimed of nodes alone, where a query asks for them."""


@already_requested_by("cpu_tiers.nova.scheduler.numa_query.SEAMS")
def translate(server: ServerRequest) -> Iterable[RequestGroup | SameSubtree]:
    """Return the groups of each node, or the traits that a host must not have.

    :raises InvalidInput: memory of a node in broken pages, or amounts in the
        flavor that its nodes do not make up.
    """
    if server.as_fallback:
        return [RequestGroup(forbidden=frozenset({node_trait(), no_numa_trait()}))]
    if not server.query_numa:
        return []
    if not server.nodes:
        return [RequestGroup(forbidden=frozenset({node_trait()}))]
    faults = FaultList()
    with faults:
        _check_pages(server)
    with faults:
        _check_own_amounts(server)
    faults.raise_if_any()
    isolate = server.own_groups.group_policy == "isolate"
    return [
        part
        for number, node in enumerate(server.nodes, start=1)
        for part in _of_node(server, number, node, isolate=isolate)
    ]


def _of_node(
    server: ServerRequest, number: int, node: GuestNode, *, isolate: bool
) -> Iterable[RequestGroup | SameSubtree]:
    """Yield one node's groups.

    :param isolate: each group gets a provider of its own; the trait cannot
        stand in a group beside the CPUs then, whose provider it describes.
    """
    memory, processors, root = f"_MEM{number}", f"_PROC{number}", f"_NUMA{number}"
    is_node, pages = frozenset({node_trait()}), page_trait(server.guest.page_size)
    yield RequestGroup(
        memory, {MEMORY_MB: node.memory_mb}, frozenset() if pages is None else frozenset({pages})
    )
    cpus = _cpus(server, node, server.cpus.emulator if number == 1 else 0)
    if isolate:
        yield RequestGroup(processors, cpus, is_node)
        yield SameSubtree((memory, processors))
    else:
        yield RequestGroup(processors, cpus)
        yield RequestGroup(root, required=is_node)
        yield SameSubtree((memory, processors, root))


def _cpus(server: ServerRequest, node: GuestNode, emulator: int) -> dict[str, int]:
    shared = server.shared_of(node)
    amounts = {VCPU: shared, PCPU: len(node.cpus) - shared + emulator}
    return {name: amount for name, amount in amounts.items() if amount}


def own_groups(server: ServerRequest) -> OwnGroups:
    """Return the flavor's own groups that stand beside those of its nodes.

    ``resources:VCPU`` and ``resources:PCPU`` say how many vCPUs are dedicated;
    the groups of the nodes claim them.
    """
    own = server.own_groups
    if not server.nodes:
        return own
    groups = (
        group._replace(resources={c: n for c, n in group.resources.items() if c not in OF_A_NODE})
        for group in own.groups
    )
    return OwnGroups(
        groups=tuple(group for group in groups if group.resources or group.has_traits),
        group_policy=own.group_policy or "none",
    )


def _check_own_amounts(server: ServerRequest) -> None:
    cpus = server.cpus
    claimed = {
        VCPU: cpus.shared,
        PCPU: cpus.dedicated + cpus.emulator,
        MEMORY_MB: server.flavor.memory_mb,
    }
    faults = FaultList()
    for name, amount in claimed.items():
        stated = server.own_groups.amount(name)
        if stated not in (None, amount):
            faults.add(
                f"flavor {server.flavor.name}, resources:{name}",
                f"{stated}, but its NUMA nodes have {amount}",
                "leave it out: it could not be divided among the nodes",
            )
    faults.raise_if_any()


def _check_pages(server: ServerRequest) -> None:
    """Refuse memory that no whole number of the pages makes up."""
    size_kb = server.guest.page_size
    if not isinstance(size_kb, int):
        return
    faults = FaultList()
    for number, node in enumerate(server.nodes):
        if node.memory_mb * 1024 % size_kb:
            faults.add(
                f"flavor {server.flavor.name}, NUMA node {number}",
                f"{node.memory_mb} MiB are no whole pages of {size_kb} kB",
                f"change its memory, or {PAGE_SIZE}",
            )
    faults.raise_if_any()
