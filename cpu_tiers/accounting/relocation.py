"""Relocation: to which NUMA node the resources of each server go when a host becomes NUMA-aware.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. The amounts that a consumer holds of
the root provider are moved, and never changed. A server with a NUMA topology goes to the nodes and
page sizes where its guest runs; a server without a topology goes to one node, with its memory in
small pages (:mod:`~cpu_tiers.accounting.packing`). Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from cpu_tiers.accounting import numa_nodes
from cpu_tiers.accounting.holdings import (
    Amounts,
    ConsumerId,
    Holdings,
    Portion,
    ProviderId,
    ProviderName,
)
from cpu_tiers.accounting.missing_shares import Owner
from cpu_tiers.accounting.numa_nodes import GuestPart, NumaNode
from cpu_tiers.accounting.packing import PackingItem, pack
from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.model.guest import GuestTopology, Pinning
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import OF_NODES

_NOTHING = Portion[ProviderName]()


class ServersDoNotFit(InvalidInput):
    """Servers have no place on the NUMA nodes of their host; each server is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resident:
    """The owner of a consumer of a host, and the place of its guest as it was or is on that host.

    :param owner: ``None`` if Nova does not know the consumer.
    :param topology: ``None`` for a guest without NUMA nodes.
    :param pinning: the host cells of the guest; ``None`` if they are not known.
    """

    owner: Owner | None = None
    topology: GuestTopology | None = None
    pinning: Pinning | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeInput:
    """The state of a host before a reshape.

    :param tree: the provider tree of the host as it is going to be.
    :param root_amounts: what the consumers that are going to move hold of the root.
    :param on_nodes: what consumers hold of the NUMA nodes already.
    """

    tree: ProviderTree
    root_amounts: Mapping[ConsumerId, Amounts]
    on_nodes: Holdings[ProviderName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    """The resources of a consumer on its new NUMA nodes, and its name in messages."""

    consumer: ConsumerId
    name: str
    resources: Portion[ProviderName]

    @property
    def amounts(self) -> dict[str, int]:
        """Return the amounts that move, by resource class."""
        return self.resources.total

    def carried_out(
        self,
        before: Portion[ProviderId],
        root: ProviderId,
        uuid_of: Callable[[ProviderName], ProviderId],
    ) -> Portion[ProviderId]:
        """Return what the consumer holds after the relocation, with 1 ``NUMA_SERVER`` of the root.

        :param before: what the consumer holds now.
        :param uuid_of: returns the uuid of a provider by its name.
        """
        moved = self.amounts
        stays = {name: amount for name, amount in before[root].items() if name not in moved}
        root_portion = Portion({root: {**stays, NUMA_SERVER: 1}})
        return before.without(root) + root_portion + self.resources.renamed(uuid_of)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnplacedPart:
    """A part of a consumer for which no NUMA node has room.

    :param why: the amounts of the part, and the limits of the nodes.
    """

    consumer: ConsumerId
    name: str
    why: str

    @property
    def fault(self) -> Fault:
        """Return the message for a consumer that holds the part of the root."""
        return Fault(
            where=self.name,
            given=f"holds {self.why}",
            allowed="move it to a host that does not report its NUMA nodes, or resize it",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Move:
    """A part of a consumer, to be moved to one node."""

    consumer: ConsumerId
    name: str
    part: GuestPart

    def unplaced(self, why: str) -> UnplacedPart:
        return UnplacedPart(consumer=self.consumer, name=self.name, why=f"{self.part}; {why}")


_Place = tuple[_Move, NumaNode]


def relocate(
    tree: ProviderTree,
    root_amounts: Mapping[ConsumerId, Amounts],
    residents: Mapping[ConsumerId, Resident],
    used: Portion[ProviderName] = _NOTHING,
) -> tuple[Relocation, ...]:
    """Return the relocations of all consumers of a root; see :func:`assign_to_nodes`.

    :raises ServersDoNotFit: with every server for which no node has room.
    """
    relocations, unplaced = assign_to_nodes(tree, root_amounts, residents, used)
    if unplaced:
        raise ServersDoNotFit(part.fault for part in unplaced)
    return relocations


def assign_to_nodes(
    tree: ProviderTree,
    root_amounts: Mapping[ConsumerId, Amounts],
    residents: Mapping[ConsumerId, Resident],
    used: Portion[ProviderName] = _NOTHING,
) -> tuple[tuple[Relocation, ...], tuple[UnplacedPart, ...]]:
    """Assign consumers to NUMA nodes, as far as the nodes have room.

    Returns the relocations of the consumers that fit, each whole, and the parts that do not fit.

    :param tree: the provider tree of the host as it is going to be.
    :param root_amounts: what each consumer holds of the root, or is going to hold.
        Amounts of which the root keeps an inventory stay there.
    :param residents: a consumer without a resident has no NUMA topology.
    :param used: what all consumers hold of the NUMA nodes already.
    """
    moves = _moves(tree, root_amounts, residents)
    places, unplaced = _place(moves, numa_nodes.read_nodes(tree, used))
    homeless = {part.consumer for part in unplaced}
    fitting = [place for place in places if place[0].consumer not in homeless]
    return _relocations(fitting), tuple(unplaced)


def _moves(
    tree: ProviderTree,
    root_amounts: Mapping[ConsumerId, Amounts],
    residents: Mapping[ConsumerId, Resident],
) -> list[_Move]:
    moving, sizes = OF_NODES - tree.root.inventories.keys(), numa_nodes.page_sizes(tree)
    moves = []
    for consumer in sorted(root_amounts):
        amounts = {name: n for name, n in root_amounts[consumer].items() if name in moving and n}
        if amounts:
            resident = residents.get(consumer, Resident())
            parts = numa_nodes.divide_guest(amounts, resident.topology, resident.pinning, sizes)
            name = f"consumer {consumer}, which Nova does not know"
            if owner := resident.owner:
                name = f"{owner.name}, flavor {owner.flavor.name}"
            moves += [_Move(consumer=consumer, name=name, part=part) for part in parts]
    return moves


def _place(
    moves: list[_Move], nodes: tuple[NumaNode, ...]
) -> tuple[list[_Place], list[UnplacedPart]]:
    by_cell = {node.cell: node for node in nodes}
    left = {node.cell: dict(node.left) for node in nodes}
    places, floating, unplaced = list[_Place](), list[_Move](), list[UnplacedPart]()
    # Guests that are pinned come first: they cannot go elsewhere, and the others can.
    for move in moves:
        cell, amounts = move.part.cell, move.part.amounts
        if cell is None:
            floating.append(move)
        elif cell not in by_cell:
            why = f"it runs on NUMA node {cell}, which the host does not report"
            unplaced.append(move.unplaced(why))
        elif limit := by_cell[cell].limit(amounts, left[cell]):
            unplaced.append(move.unplaced(limit))
        else:
            places.append((move, by_cell[cell]))
            for kind, amount in amounts.items():
                left[cell][kind] -= amount
    items = [_packing_item(move, nodes) for move in floating]
    packing = pack(items, [left[node.cell] for node in nodes])
    for item, in_bin, move in zip(items, packing.bins, floating, strict=True):
        if in_bin is not None:
            places.append((move, nodes[in_bin]))
        else:
            unplaced.append(move.unplaced(_why(move.part, item, nodes, packing.gave_up)))
    return places, unplaced


def _packing_item(move: _Move, nodes: Iterable[NumaNode]) -> PackingItem:
    amounts = move.part.amounts
    allowed = frozenset(b for b, node in enumerate(nodes) if not node.limit(amounts, node.left))
    return PackingItem(consumer=move.consumer, amounts=amounts, allowed=allowed)


def _why(part: GuestPart, item: PackingItem, nodes: tuple[NumaNode, ...], gave_up: bool) -> str:
    if not item.allowed:
        limits = "; ".join(f"{node.name}: {node.limit(part.amounts, node.left)}" for node in nodes)
        return f"no NUMA node can hold all of it ({limits})"
    if gave_up:
        return "no room for it was found beside the others, in a search that was cut short"
    return "no NUMA node has room for it beside the others"


def _relocations(places: Iterable[_Place]) -> tuple[Relocation, ...]:
    portions: dict[ConsumerId, Portion[ProviderName]] = {}
    names: dict[ConsumerId, str] = {}
    for move, node in places:
        names[move.consumer] = move.name
        for kind, amount in move.part.amounts.items():
            provider, resource_class = node.places[kind]
            placed = portions.get(move.consumer, _NOTHING)
            portions[move.consumer] = placed + Portion({provider: {resource_class: amount}})
    return tuple(
        Relocation(consumer=consumer, name=names[consumer], resources=portions[consumer])
        for consumer in sorted(portions)
    )
