"""Move a host with servers to its NUMA nodes, in one ``POST /reshaper``.

Spec: numa-topology-with-rps, "Upgrade impact"; decision D8. The providers of the NUMA nodes are
created first, with their traits and without inventories, so that no server is placed on half of
them. Afterwards inventories and allocations change in one transaction. A second run finds nothing
to do, or completes a first run that was killed.

The transaction depends on all consumers of the root. If a claim comes in between, only the root
and the consumers that are new or hold something else are read again, so that few further claims
come meanwhile (decision D92).
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Portion, ProviderId, ProviderName
from cpu_tiers.accounting.relocation import Relocation, ReshapeInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.placement.errors import GenerationConflict
from cpu_tiers.placement.plan import steps, with_ratios
from cpu_tiers.placement.records import Consumer
from cpu_tiers.placement.steps import Change, SetInventories, State, Step
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import repeated
from cpu_tiers.tools.placement.sync import changes_of, read_holdings, read_state
from cpu_tiers.tools.placement.writer import Progress, Writer, carry_out, changed

FindRelocations = Callable[
    [ProviderTree, Mapping[ConsumerId, Amounts], Portion[ProviderName]], tuple[Relocation, ...]
]
"""Returns the relocations of consumers of a root, as a
:class:`~cpu_tiers.tools.writers.plan_file.SavedPlan` does.

The arguments are those of :func:`~cpu_tiers.accounting.relocation.relocate` without residents.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The steps of a reshape: repeatable steps, and a transaction at the end.

    :param inventories: the steps of the transaction.
    :param consumers: as they were read from Placement.
    :param before: what the relocations were computed from; ``None`` if no consumer moves.
    :param root: the name of the root provider.
    """

    preparation: tuple[Step, ...]
    inventories: tuple[SetInventories, ...]
    relocations: tuple[Relocation, ...]
    consumers: Mapping[ConsumerId, Consumer]
    before: ReshapeInput | None
    root: str

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return all changes in the order of writing."""
        return (*changes_of(self.preparation), *self.in_one)

    @property
    def in_one(self) -> tuple[Change, ...]:
        """Return the changes of the transaction."""
        moves = (
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
        return (*changes_of(self.inventories), *moves)


def read_reshape_input(client: PlacementClient, tree: ProviderTree) -> ReshapeInput:
    """Return the state of a host from which a reshape would start now.

    :raises PlacementError: for the same reasons as :func:`reshape`.
    """
    state = read_state(client, tree)
    steps(state, tree)  # for its refusals
    return _reshape_input(client, state, tree, consumers_of_root(client, state, tree))


def reshape(
    client: PlacementClient, tree: ProviderTree, find_relocations: FindRelocations
) -> tuple[Change, ...]:
    """Move a host to its NUMA nodes, with its servers; return the changes.

    :param tree: the provider tree of the host as it is going to be.
    :param find_relocations: called again at each attempt.
    :raises ServersDoNotFit: with every server for which no node has room; nothing is written.
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
            _transact(client, planned, writer, find_relocations, progress)

    return carry_out(client.retry_policy, attempt)


def _transact(
    client: PlacementClient,
    planned: Reshape,
    writer: Writer,
    find_relocations: FindRelocations,
    progress: Progress,
) -> None:
    """Write the transaction; after a conflict, with the consumers of the root at that time."""

    def write() -> None:
        progress.send(planned.in_one)
        try:
            writer.reshape(planned.inventories, _moved(planned, writer))
        except GenerationConflict as error:
            if not error.resent:
                progress.refuse()
            raise
        progress.confirm()

    def write_anew() -> None:
        nonlocal planned
        planned = _planned_anew(client, planned, writer, find_relocations)
        progress.drop()  # The root is as it was, so nothing of the last attempt is written.
        progress.begin(planned.in_one)
        write()

    try:
        write()
    except GenerationConflict:
        repeated(client.retry_policy, write_anew)


def _planned_anew(
    client: PlacementClient, planned: Reshape, writer: Writer, find_relocations: FindRelocations
) -> Reshape:
    """Return the reshape of the consumers that the root has now.

    The NUMA nodes are not read again: Placement refuses the transaction if they have changed.

    :raises DataChanged: the root has other inventories, or the conflict is not about the root.
    """
    root_step = next((step for step in planned.inventories if step.provider == planned.root), None)
    if root_step is None or planned.before is None:
        raise changed(planned.root, "NUMA nodes")
    has_new_generation = writer.read_again(root_step)
    root = writer.uuid(planned.root)
    moving = moving_classes(planned.before.tree)
    consumers = moving_consumers(client, root, moving, planned.consumers)
    if not has_new_generation and consumers == planned.consumers:
        raise changed(planned.root, "NUMA nodes, or other allocations of the servers,")
    root_amounts = {uuid: consumer.allocations.of(root) for uuid, consumer in consumers.items()}
    before = replace(planned.before, root_amounts=root_amounts)
    relocations = _relocations(before, find_relocations)
    return replace(planned, consumers=consumers, before=before, relocations=relocations)


def _plan(
    client: PlacementClient, state: State, tree: ProviderTree, find_relocations: FindRelocations
) -> Reshape:
    planned = steps(state, tree)
    consumers = consumers_of_root(client, state, tree)
    before = _reshape_input(client, state, tree, consumers) if consumers else None
    return Reshape(
        preparation=tuple(step for step in planned if not isinstance(step, SetInventories)),
        inventories=tuple(step for step in planned if isinstance(step, SetInventories)),
        relocations=_relocations(before, find_relocations) if before else (),
        consumers=consumers,
        before=before,
        root=tree.root.name,
    )


def _relocations(
    before: ReshapeInput, find_relocations: FindRelocations
) -> tuple[Relocation, ...]:
    if not before.root_amounts:
        return ()
    return find_relocations(before.tree, before.root_amounts, before.on_nodes.total)


def _reshape_input(
    client: PlacementClient,
    state: State,
    tree: ProviderTree,
    consumers: Mapping[ConsumerId, Consumer],
) -> ReshapeInput:
    root = tree.root.name
    return ReshapeInput(
        tree=with_ratios(state, tree),
        root_amounts={
            uuid: consumer.allocations.of(ProviderId(state.providers[root].uuid))
            for uuid, consumer in consumers.items()
        },
        on_nodes=read_holdings(client, state, state.providers.keys() - {root}),
    )


def _moved(planned: Reshape, writer: Writer) -> list[Consumer]:
    moved = []
    for relocation in planned.relocations:
        consumer = planned.consumers[relocation.consumer]
        allocations = relocation.carried_out(
            consumer.allocations, writer.uuid(planned.root), writer.uuid
        )
        moved.append(replace(consumer, allocations=allocations))
    return moved


def moving_classes(tree: ProviderTree) -> Set[str]:
    """Return the resource classes of NUMA nodes that the root does not have."""
    return OF_NODES - tree.root.inventories.keys()


def consumers_of_root(
    client: PlacementClient, state: State, tree: ProviderTree
) -> dict[ConsumerId, Consumer]:
    """Return the consumers that hold classes which the root of ``tree`` is going to lose."""
    present, moving = state.providers.get(tree.root.name), moving_classes(tree)
    if present is None or not moving & present.inventories.by_class.keys():
        return {}
    return moving_consumers(client, ProviderId(present.uuid), moving, {})


def moving_consumers(
    client: PlacementClient,
    root: ProviderId,
    moving: Set[str],
    known: Mapping[ConsumerId, Consumer],
) -> dict[ConsumerId, Consumer]:
    """Return the consumers that hold some of the classes of the root.

    :param known: consumers that are read again only if they hold something else of the root.
    """
    consumers = {}
    for uuid, amounts in client.allocations(root).items():
        if moving & amounts.keys():
            consumer = known.get(uuid)
            if consumer is None or consumer.allocations.of(root) != amounts:
                consumer = client.consumer(uuid)
            # A consumer may have let go of the root between the two reads.
            if moving & consumer.allocations.of(root).keys():
                consumers[uuid] = consumer
    return consumers
