"""Make a host NUMA-aware while servers run on it: one ``POST /reshaper``.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. The NUMA nodes'
providers are created first, empty and with their traits, so that no server is
placed on half of them. Then inventories and allocations change in one
transaction. A second run finds nothing to do, and finishes what the first one
left when it was killed.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from cpu_tiers.accounting.holdings import Holdings, joined
from cpu_tiers.accounting.relocation import OF_NODES, Held, Relocation, Resident, relocate
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.hosts import read_holdings
from cpu_tiers.placement.plan import steps, with_ratios
from cpu_tiers.placement.records import Consumer
from cpu_tiers.placement.steps import Change, SetInventories, State, Step
from cpu_tiers.placement.sync import changes_of, read_state
from cpu_tiers.placement.writer import Progress, Writer, carry_out

FindResidents = Callable[[Collection[str]], Mapping[str, Resident]]
"""Returns whose these consumers are."""

FindRelocations = Callable[[ProviderTree, Held, Held], tuple[Relocation, ...]]
"""Returns where consumers go: :func:`relocations_by_residents`, or a ``SavedPlan``."""


def relocations_by_residents(find_residents: FindResidents) -> FindRelocations:
    """Return what works out where consumers go, from whose they are."""
    return lambda tree, held, used: relocate(tree, held, find_residents(held.keys()), used)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeInput:
    """What a reshape starts from.

    :param tree: the host's, as it is going to be.
    :param held: of its root, by those consumers that are to move.
    :param on_nodes: what is held of the NUMA nodes already, by the names of the
        providers.
    """

    tree: ProviderTree
    held: Held
    on_nodes: Holdings


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """What is written: steps that can be repeated, then one transaction.

    :param inventories: the steps of the transaction.
    :param consumers: as they were read.
    """

    preparation: tuple[Step, ...]
    inventories: tuple[SetInventories, ...]
    relocations: tuple[Relocation, ...]
    consumers: Mapping[str, Consumer]
    root: str

    @property
    def moves(self) -> tuple[Change, ...]:
        """Return a change for each consumer whose allocations move."""
        return tuple(
            Change(
                provider=self.root,
                what=f"allocations of {relocation.name}",
                before=f"on {self.root}",
                after="; ".join(
                    f"{', '.join(f'{n} {name}' for name, n in resources.items())} on {provider}"
                    for provider, resources in relocation.resources.items()
                ),
            )
            for relocation in self.relocations
        )

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return everything that changes, in the order in which it is written."""
        return (*changes_of(self.preparation), *self.in_one)

    @property
    def in_one(self) -> tuple[Change, ...]:
        """Return what changes in the transaction."""
        return (*changes_of(self.inventories), *self.moves)


def read_reshape_input(client: PlacementClient, tree: ProviderTree) -> ReshapeInput:
    """Return what a reshape of a host would start from now.

    :raises PlacementError: what :func:`reshape` would refuse.
    """
    state = read_state(client, tree)
    steps(state, tree)  # refuses
    return _reshape_input(client, state, tree, _residents_of_root(client, state, tree))


def plan_reshape(client: PlacementClient, tree: ProviderTree, moves: FindRelocations) -> Reshape:
    """Return what :func:`reshape` would write; write nothing.

    :param moves: see :func:`relocations_by_residents`.
    :raises ServersDoNotFit: with every server that finds no place.
    :raises PlacementError: what :func:`reshape` would refuse.
    """
    return _plan(client, read_state(client, tree), tree, moves)


def reshape(
    client: PlacementClient, tree: ProviderTree, moves: FindRelocations
) -> tuple[Change, ...]:
    """Make Placement have ``tree``, servers and all; return what was changed.

    :param moves: says where consumers go, at each attempt anew.
    :raises ServersDoNotFit: with every server that finds no place; nothing is
        written.
    :raises InsufficientCapacity: Placement sees less room than we; no
        inventory and no allocation is changed.
    :raises PlacementError: its ``written``, ``unconfirmed`` and ``unwritten``
        tell how far it came.
    """

    def attempt(progress: Progress) -> None:
        state = read_state(client, tree)
        planned = _plan(client, state, tree, moves)
        progress.begin(planned.changes)
        writer = Writer(client, state)
        writer.take(planned.preparation, progress)
        if planned.in_one:
            progress.send(planned.in_one)
            writer.reshape(planned.inventories, _moved(planned, writer))
            progress.confirm()

    return carry_out(attempt)


def _plan(
    client: PlacementClient, state: State, tree: ProviderTree, moves: FindRelocations
) -> Reshape:
    planned = steps(state, tree)
    consumers = _residents_of_root(client, state, tree)
    relocations: tuple[Relocation, ...] = ()
    if consumers:
        reshape_input = _reshape_input(client, state, tree, consumers)
        relocations = moves(
            reshape_input.tree, reshape_input.held, joined(reshape_input.on_nodes.values())
        )
    return Reshape(
        preparation=tuple(step for step in planned if not isinstance(step, SetInventories)),
        inventories=tuple(step for step in planned if isinstance(step, SetInventories)),
        relocations=relocations,
        consumers=consumers,
        root=tree.root.name,
    )


def _reshape_input(
    client: PlacementClient, state: State, tree: ProviderTree, consumers: Mapping[str, Consumer]
) -> ReshapeInput:
    root = state.providers.get(tree.root.name)
    return ReshapeInput(
        tree=with_ratios(state, tree),
        held={uuid: c.allocations[root.uuid] for uuid, c in consumers.items()} if root else {},
        on_nodes=read_holdings(client, state, state.providers.keys() - {tree.root.name}),
    )


def _residents_of_root(
    client: PlacementClient, state: State, tree: ProviderTree
) -> dict[str, Consumer]:
    """Return the consumers that hold of the root what it is not going to have."""
    present = state.providers.get(tree.root.name)
    moving = OF_NODES - tree.root.inventories.keys()
    if present is None or not moving & present.inventories.by_class.keys():
        return {}
    holding = client.allocations(present.uuid)
    found = (client.consumer(uuid) for uuid, held in holding.items() if moving & held.keys())
    return {
        consumer.uuid: consumer
        for consumer in found
        if moving & consumer.allocations.get(present.uuid, {}).keys()
    }


def _moved(planned: Reshape, writer: Writer) -> list[Consumer]:
    """Return the consumers that move, with their resources on NUMA nodes and all others kept."""
    root = writer.uuid(planned.root)
    found = []
    for relocation in planned.relocations:
        consumer = planned.consumers[relocation.consumer]
        allocations = relocation.carried_out(consumer.allocations, root, writer.uuid)
        found.append(replace(consumer, allocations=allocations))
    return found
