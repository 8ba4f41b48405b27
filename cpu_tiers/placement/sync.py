"""Make Placement have a provider tree: read, plan, write what differs.

A second run writes nothing. When it fails half-way, the error says what is
written and what is not; running it again finishes the work.
"""

import re
from collections.abc import Iterable

from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.numa import is_part
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.errors import InventoryInUse, PlacementError
from cpu_tiers.placement.plan import (
    Change,
    CreateName,
    CreateProvider,
    ProviderState,
    SetInventories,
    SetTraits,
    State,
    Step,
    steps,
)
from cpu_tiers.placement.records import Inventories, Provider, Traits


def plan(client: PlacementClient, tree: ProviderTree) -> tuple[Change, ...]:
    """Return what :func:`sync` would change; write nothing.

    :raises PlacementError: what :func:`sync` would refuse.
    """
    return _changes(steps(read_state(client, tree), tree))


def sync(client: PlacementClient, tree: ProviderTree) -> tuple[Change, ...]:
    """Write what differs, and return what was changed.

    :raises PlacementError: its ``written``, ``unconfirmed`` and ``unwritten``
        tell how far it came. Refused before the first write:
        :class:`~cpu_tiers.placement.errors.ProviderMismatch`,
        :class:`~cpu_tiers.placement.errors.ProviderNotFound`,
        :class:`~cpu_tiers.placement.errors.ReportingCannotBeDisabled`,
        :class:`~cpu_tiers.placement.errors.UnknownNames`.
    """
    progress = _Progress()

    def attempt() -> None:
        state = read_state(client, tree)
        planned = steps(state, tree)
        progress.begin(_changes(planned))
        writer = _Writer(client, state)
        for step in planned:
            progress.send(step.changes)
            writer.write(step)
            progress.confirm()

    try:
        with_fresh_reads(attempt)
    except PlacementError as error:
        progress.tell(error)
        raise
    return tuple(progress.written)


def _changes(planned: Iterable[Step]) -> tuple[Change, ...]:
    return tuple(change for step in planned for change in step.changes)


def read_state(client: PlacementClient, tree: ProviderTree) -> State:
    """Return what Placement has of ``tree``.

    :raises UnknownNames: the tree has standard names that Placement lacks.
    """
    root = client.find_provider(tree.root.name)
    family = client.providers_in_tree(root.uuid) if root else ()
    relatives = {provider.name: provider for provider in family}
    wanted = {provider.name for provider in tree.providers}
    wanted |= {name for name in relatives if is_part(tree.root.name, name)}
    found = {name: relatives.get(name) or client.find_provider(name) for name in wanted}
    names = {provider.uuid: provider.name for provider in family}
    providers = {
        name: _read_provider(client, provider, names)
        for name, provider in found.items()
        if provider is not None
    }
    classes, traits = tree.names()
    for state in providers.values():  # what a provider has, Placement knows
        classes -= frozenset(state.inventories.by_class)
        traits -= state.traits.names
    absent_classes, absent_traits = client.absent_names(classes, traits)
    return State(providers=providers, absent_classes=absent_classes, absent_traits=absent_traits)


def _read_provider(
    client: PlacementClient, provider: Provider, names: dict[str, str]
) -> ProviderState:
    parent = provider.parent_uuid
    if parent is not None:
        parent = names.get(parent) or client.provider(parent).name  # of somebody else's tree
    return ProviderState(
        uuid=provider.uuid,
        parent=parent,
        inventories=client.inventories(provider.uuid),
        traits=client.traits(provider.uuid),
    )


class _Writer:
    """Takes the steps, with the uuids and generations of the state they came from."""

    def __init__(self, client: PlacementClient, state: State) -> None:
        self._client = client
        self._uuids = {name: provider.uuid for name, provider in state.providers.items()}
        self._inventories = {n: p.inventories.generation for n, p in state.providers.items()}
        self._traits = {n: p.traits.generation for n, p in state.providers.items()}

    def write(self, step: Step) -> None:
        match step:
            case CreateName(kind="trait"):
                self._client.create_trait(step.name)
            case CreateName():
                self._client.create_resource_class(step.name)
            case CreateProvider():
                self._create(step)
            case SetInventories():
                self._set_inventories(step)
            case SetTraits():
                self._set_traits(step)

    def _create(self, step: CreateProvider) -> None:
        parent = None if step.parent is None else self._uuids[step.parent]
        created = self._client.create_provider(
            step.provider, parent_uuid=parent, provider_uuid=step.uuid
        )
        self._uuids[step.provider] = created.uuid
        self._inventories[step.provider] = self._traits[step.provider] = 0

    def _set_inventories(self, step: SetInventories) -> None:
        generation = self._inventories[step.provider]
        wanted = Inventories(generation=generation, by_class=step.after)
        try:
            written = self._client.set_inventories(self._uuids[step.provider], wanted)
        except InventoryInUse as error:
            raise _in_use(step, error) from error
        # Nobody wrote between the two reads, or this write had been refused.
        self._traits[step.provider] = written.generation

    def _set_traits(self, step: SetTraits) -> None:
        wanted = Traits(generation=self._traits[step.provider], names=step.after)
        self._client.set_traits(self._uuids[step.provider], wanted)


def _in_use(step: SetInventories, error: InventoryInUse) -> InventoryInUse:
    said = " ".join(error.details)
    named = tuple(name for name in sorted(step.removed) if re.search(rf"\b{name}\b", said))
    classes = named or tuple(sorted(step.removed))
    named_error = InventoryInUse(
        f"{step.provider}: {', '.join(classes)} is to be removed, but servers hold allocations"
        f" of it; move them away first, or reshape ({'; '.join(error.details)})",
        method=error.method,
        path=error.path,
        status=error.status,
        details=error.details,
    )
    named_error.provider = step.provider
    named_error.resource_classes = classes
    return named_error


class _Progress:
    """Which changes are written, which are under way, and which are to come."""

    def __init__(self) -> None:
        self.written: list[Change] = []
        self._sent: tuple[Change, ...] = ()
        self._to_come: tuple[Change, ...] = ()

    def begin(self, changes: tuple[Change, ...]) -> None:
        """Start an attempt; what was sent and is not needed any more was written."""
        needed = {(change.provider, change.what) for change in changes}
        self.written += [c for c in self._sent if (c.provider, c.what) not in needed]
        self._sent, self._to_come = (), changes

    def send(self, changes: tuple[Change, ...]) -> None:
        self._sent, self._to_come = changes, self._to_come[len(changes) :]

    def confirm(self) -> None:
        self.written += self._sent
        self._sent = ()

    def tell(self, error: PlacementError) -> None:
        """Add to the error how far it came; a 4xx alone says for sure: not written."""
        refused = error.status is not None and 400 <= error.status < 500
        error.report(
            written=self.written,
            unconfirmed=() if refused else self._sent,
            unwritten=(*self._sent, *self._to_come) if refused else self._to_come,
        )
