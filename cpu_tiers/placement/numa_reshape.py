"""Move a host with servers to its NUMA nodes, in one ``POST /reshaper``.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. The providers of the NUMA nodes are
created first, with their traits and without inventories, so that no server is placed on half of
them. Afterwards inventories and allocations change in one transaction. A second run finds nothing
to do, or completes a first run that was killed.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from cpu_tiers.accounting.holdings import (
    Amounts,
    ConsumerId,
    Holdings,
    Portion,
    ProviderId,
    ProviderName,
)
from cpu_tiers.accounting.relocation import OF_NODES, Relocation, Resident, relocate
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.hosts import read_holdings
from cpu_tiers.placement.plan import steps, with_ratios
from cpu_tiers.placement.records import Consumer
from cpu_tiers.placement.steps import Change, SetInventories, State, Step
from cpu_tiers.placement.sync import changes_of, read_state
from cpu_tiers.placement.writer import Progress, Writer, carry_out

FindResidents = Callable[[Collection[ConsumerId]], Mapping[ConsumerId, Resident]]
"""Returns the residents of these consumers."""

FindRelocations = Callable[
    [ProviderTree, Mapping[ConsumerId, Amounts], Portion[ProviderName]], tuple[Relocation, ...]
]
"""Returns the relocations of consumers of a root: :func:`relocations_by_residents`, or a
:class:`~cpu_tiers.placement.plan_file.SavedPlan`.

The arguments are those of :func:`~cpu_tiers.accounting.relocation.relocate` without residents.
"""


def relocations_by_residents(find_residents: FindResidents) -> FindRelocations:
    """Return a function that computes relocations from the residents of the host."""
    return lambda tree, of_root, used: relocate(
        tree, of_root, find_residents(of_root.keys()), used
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshapeInput:
    """The state of a host before a reshape.

    :param tree: the provider tree of the host as it is going to be.
    :param of_root: what the consumers that are going to move hold of the root.
    :param on_nodes: what consumers hold of the NUMA nodes already.
    """

    tree: ProviderTree
    of_root: Mapping[ConsumerId, Amounts]
    on_nodes: Holdings[ProviderName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The steps of a reshape: repeatable steps, and a transaction at the end.

    :param inventories: the steps of the transaction.
    :param consumers: as they were read from Placement.
    :param root: the name of the root provider.
    """

    preparation: tuple[Step, ...]
    inventories: tuple[SetInventories, ...]
    relocations: tuple[Relocation, ...]
    consumers: Mapping[ConsumerId, Consumer]
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
        """Return all changes in the order of writing."""
        return (*changes_of(self.preparation), *self.in_one)

    @property
    def in_one(self) -> tuple[Change, ...]:
        """Return the changes of the transaction."""
        return (*changes_of(self.inventories), *self.moves)


def read_reshape_input(client: PlacementClient, tree: ProviderTree) -> ReshapeInput:
    """Return the state of a host from which a reshape would start now.

    :raises PlacementError: for the same reasons as :func:`reshape`.
    """
    state = read_state(client, tree)
    steps(state, tree)  # for its refusals
    return _reshape_input(client, state, tree, _residents_of_root(client, state, tree))


def plan_reshape(
    client: PlacementClient, tree: ProviderTree, find_relocations: FindRelocations
) -> Reshape:
    """Return the reshape that :func:`reshape` would carry out; write nothing.

    :param find_relocations: see :func:`relocations_by_residents`.
    :raises ServersDoNotFit: with every server for which no node has room.
    :raises PlacementError: for the same reasons as :func:`reshape`.
    """
    return _plan(client, read_state(client, tree), tree, find_relocations)


def reshape(
    client: PlacementClient, tree: ProviderTree, find_relocations: FindRelocations
) -> tuple[Change, ...]:
    """Move a host to its NUMA nodes, with its servers; return the changes.

    :param tree: the provider tree of the host as it is going to be.
    :param find_relocations: called again at each attempt.
    :raises ServersDoNotFit: with every server for which no node has room;
        nothing is written.
    :raises InsufficientCapacity: Placement has less room than was computed here;
        no inventory and no allocation is changed.
    :raises PlacementError: the attributes ``written``, ``unconfirmed`` and
        ``unwritten`` tell which changes were made.
    """

    def attempt(progress: Progress) -> None:
        state = read_state(client, tree)
        planned = _plan(client, state, tree, find_relocations)
        progress.begin(planned.changes)
        writer = Writer(client, state)
        writer.take(planned.preparation, progress)
        if planned.in_one:
            progress.send(planned.in_one)
            writer.reshape(planned.inventories, _moved(planned, writer))
            progress.confirm()

    return carry_out(client.retry_policy, attempt)


def _plan(
    client: PlacementClient, state: State, tree: ProviderTree, find_relocations: FindRelocations
) -> Reshape:
    planned = steps(state, tree)
    consumers = _residents_of_root(client, state, tree)
    relocations: tuple[Relocation, ...] = ()
    if consumers:
        before = _reshape_input(client, state, tree, consumers)
        relocations = find_relocations(before.tree, before.of_root, before.on_nodes.total)
    return Reshape(
        preparation=tuple(step for step in planned if not isinstance(step, SetInventories)),
        inventories=tuple(step for step in planned if isinstance(step, SetInventories)),
        relocations=relocations,
        consumers=consumers,
        root=tree.root.name,
    )


def _reshape_input(
    client: PlacementClient,
    state: State,
    tree: ProviderTree,
    consumers: Mapping[ConsumerId, Consumer],
) -> ReshapeInput:
    root = state.providers.get(tree.root.name)
    uuid = ProviderId(root.uuid if root else "")  # without a root there are no consumers
    return ReshapeInput(
        tree=with_ratios(state, tree),
        of_root={c: consumer.allocations.of(uuid) for c, consumer in consumers.items()},
        on_nodes=read_holdings(client, state, state.providers.keys() - {tree.root.name}),
    )


def _residents_of_root(
    client: PlacementClient, state: State, tree: ProviderTree
) -> dict[ConsumerId, Consumer]:
    """Return the consumers that hold classes of the root that the root is going to lose."""
    present = state.providers.get(tree.root.name)
    moving = OF_NODES - tree.root.inventories.keys()
    if present is None or not moving & present.inventories.by_class.keys():
        return {}
    root = ProviderId(present.uuid)
    consumers = {
        uuid: client.consumer(uuid)
        for uuid, amounts in client.allocations(root).items()
        if moving & amounts.keys()
    }
    # A consumer may have let go of the root between the two reads.
    return {
        uuid: consumer
        for uuid, consumer in consumers.items()
        if moving & consumer.allocations.of(root).keys()
    }


def _moved(planned: Reshape, writer: Writer) -> list[Consumer]:
    """Return the consumers that move, with their allocations after the move."""
    root = ProviderId(writer.uuid(planned.root))
    moved = []
    for relocation in planned.relocations:
        consumer = planned.consumers[relocation.consumer]
        allocations = relocation.carried_out(
            consumer.allocations, root, lambda name: ProviderId(writer.uuid(name))
        )
        moved.append(replace(consumer, allocations=allocations))
    return moved
