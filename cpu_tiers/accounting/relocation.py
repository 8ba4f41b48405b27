"""Which NUMA node each server's resources go to when a host becomes NUMA-aware.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. What a consumer
holds of the host's root is moved, never changed:

* a server with a NUMA topology goes to the nodes and page sizes where it runs;
* one without goes to one node, with its memory in small pages; which one is
  worked out so that all of them fit (see :mod:`~cpu_tiers.accounting.packing`).

Pure. Who holds nothing of the root is left alone, so asked again this moves
nobody.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cpu_tiers.accounting.guest_parts import GuestPart, divide_guest
from cpu_tiers.accounting.holdings import Portion, joined, total
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.node_room import NumaNode, PageSizes, page_sizes, read_nodes
from cpu_tiers.accounting.packing import PackingItem, pack
from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.model.guest import GuestTopology, Pinning
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES

OF_NODES = frozenset({VCPU, PCPU, VCPU_SHARES, MEMORY_MB})
"""The classes that move from a root to its NUMA nodes."""

Held = Mapping[str, Mapping[str, int]]
"""Consumer, or provider, to resource class to amount."""


class ServersDoNotFit(InvalidInput):
    """Servers find no place on the NUMA nodes of their host; each is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """Whose the allocations of a consumer are, and where its guest runs.

    Of a migration's consumer, what the guest is and has on this host.

    :param owner: ``None`` where Nova does not know the consumer.
    :param topology: ``None`` for a guest without NUMA nodes.
    :param pinning: where the guest's nodes are; ``None`` where that is not known.
    """

    owner: Owner | None = None
    topology: GuestTopology | None = None
    pinning: Pinning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """Where the resources of a consumer go.

    :param name: how a person knows the consumer.
    :param resources: provider's name to resource class to amount.
    """

    consumer: str
    name: str
    resources: Held

    @property
    def amounts(self) -> dict[str, int]:
        """Return what goes, by resource class."""
        return total(self.resources)

    def carried_out(
        self, held: Portion, root: str, uuid_of: Callable[[str], str]
    ) -> dict[str, dict[str, int]]:
        """Return what the consumer holds afterwards, by the uuids of providers.

        :param held: before.
        :param root: the uuid of the host's root.
        :param uuid_of: returns that of a provider's name.
        """
        moved = self.amounts
        stays = {name: amount for name, amount in held[root].items() if name not in moved}
        others = {uuid: resources for uuid, resources in held.items() if uuid != root}
        on_nodes = {uuid_of(name): resources for name, resources in self.resources.items()}
        return joined([others, {root: stays} if stays else {}, on_nodes])


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplacedPart:
    """A part of a consumer that finds no place.

    :param name: how a person knows the consumer.
    :param why: what the part is, and what is in the way.
    """

    consumer: str
    name: str
    why: str

    @property
    def fault(self) -> Fault:
        """Return what a person is told of a consumer that holds it."""
        return Fault(
            where=self.name,
            given=f"holds {self.why}",
            allowed="move it to a host that does not report its NUMA nodes, or resize it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAssignment:
    """Where consumers go, each with all that it has, and who finds no place."""

    relocations: tuple[Relocation, ...]
    unplaced: tuple[UnplacedPart, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A part of a consumer that goes to one node."""

    consumer: str
    name: str
    part: GuestPart
    is_only_item: bool

    def unplaced(self, why: str) -> UnplacedPart:
        return UnplacedPart(consumer=self.consumer, name=self.name, why=f"{self.part}; {why}")


def relocate(
    tree: ProviderTree,
    held: Held,
    residents: Mapping[str, Resident],
    used: Held | None = None,
) -> tuple[Relocation, ...]:
    """Return where consumers of a host's root go; see :func:`assign_to_nodes`.

    :raises ServersDoNotFit: with every server that finds no place.
    """
    found = assign_to_nodes(tree, held, residents, used)
    if found.unplaced:
        raise ServersDoNotFit(one.fault for one in found.unplaced)
    return found.relocations


def assign_to_nodes(
    tree: ProviderTree,
    held: Held,
    residents: Mapping[str, Resident],
    used: Held | None = None,
) -> NodeAssignment:
    """Return where consumers go that hold, or are to hold, what a host's nodes have.

    :param tree: the host's, as it is going to be.
    :param held: by consumer. What the root has stays there, and is left out.
    :param residents: by consumer; one that is not here has no NUMA topology.
    :param used: what is held of the NUMA nodes' providers already, by provider.
    """
    moving = OF_NODES - tree.root.inventories.keys()
    moves = _moves(held, residents, moving, page_sizes(tree))
    places, unplaced = _place(moves, read_nodes(tree, used or {}))
    homeless = {one.consumer for one in unplaced}
    return NodeAssignment(
        relocations=tuple(r for r in _relocations(moves, places) if r.consumer not in homeless),
        unplaced=tuple(unplaced),
    )


def _moves(
    held: Held,
    residents: Mapping[str, Resident],
    moving: frozenset[str],
    sizes: PageSizes,
) -> list[_Move]:
    moves = []
    for consumer in sorted(held):
        resources = {name: n for name, n in held[consumer].items() if name in moving and n}
        if resources:
            resident = residents.get(consumer, Resident())
            parts = divide_guest(resources, resident.topology, resident.pinning, sizes)
            name = consumer_name(consumer, resident.owner)
            moves += [
                _Move(consumer=consumer, name=name, part=part, is_only_item=len(parts) == 1)
                for part in parts
            ]
    return moves


def consumer_name(consumer: str, owner: Owner | None) -> str:
    """Return how faults and plans name a consumer."""
    if owner is None:
        return f"consumer {consumer}, which Nova does not know"
    return f"{owner.name}, flavor {owner.flavor.name}"


def _place(
    moves: list[_Move], nodes: tuple[NumaNode, ...]
) -> tuple[dict[int, NumaNode], list[UnplacedPart]]:
    """Return a node for each move, by its number, and what is wrong."""
    by_cell = {node.cell: node for node in nodes}
    left = {node.cell: dict(node.left) for node in nodes}
    places: dict[int, NumaNode] = {}
    faults = []
    for number, move in enumerate(moves):
        if move.part.cell is None:
            continue
        node = by_cell.get(move.part.cell)
        if node is None:
            given = f"it runs on NUMA node {move.part.cell}, which the host does not report"
        else:
            given = node.limit(move.part.amounts, left[node.cell])
        if node is None or given:
            faults.append(move.unplaced(given))
            continue
        places[number] = node
        for kind, amount in move.part.amounts.items():
            left[node.cell][kind] -= amount
    floating = [n for n, move in enumerate(moves) if move.part.cell is None]
    found, more = _pack({n: moves[n] for n in floating}, nodes, left)
    return places | found, faults + more


def _pack(
    floating: Mapping[int, _Move],
    nodes: tuple[NumaNode, ...],
    left: Mapping[int, Mapping[str, int]],
) -> tuple[dict[int, NumaNode], list[UnplacedPart]]:
    items = [
        PackingItem(
            consumer=move.consumer,
            amounts=move.part.amounts,
            allowed=frozenset(
                b for b, node in enumerate(nodes) if not node.limit(move.part.amounts, node.left)
            ),
            is_only_item=move.is_only_item,
        )
        for move in floating.values()
    ]
    packing = pack(items, [left[node.cell] for node in nodes])
    left_over = set(packing.left_over)
    places, faults = {}, []
    for number, (n, move) in enumerate(floating.items()):
        found = packing.bins[number]
        if found is not None:
            places[n] = nodes[found]
        if number in left_over:
            faults.append(move.unplaced(_why(move.part, items[number], nodes, packing.gave_up)))
    return places, faults


def _why(part: GuestPart, item: PackingItem, nodes: tuple[NumaNode, ...], gave_up: bool) -> str:
    if not item.allowed:
        limits = "; ".join(f"{n.name}: {n.limit(part.amounts, n.left)}" for n in nodes)
        return f"no NUMA node can hold that alone ({limits})"
    if gave_up:
        return "no room for it was found beside the others, in a search that was cut short"
    return "no NUMA node has room for it beside the others"


def _relocations(moves: list[_Move], places: Mapping[int, NumaNode]) -> tuple[Relocation, ...]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    names = {move.consumer: move.name for move in moves}
    for number, move in enumerate(moves):
        if number not in places:
            continue
        resources = found.setdefault(move.consumer, {})
        for kind, amount in move.part.amounts.items():
            provider, resource_class = places[number].place(kind)
            of_provider = resources.setdefault(provider, {})
            of_provider[resource_class] = of_provider.get(resource_class, 0) + amount
    return tuple(
        Relocation(consumer=consumer, name=names[consumer], resources=resources)
        for consumer, resources in found.items()
    )
