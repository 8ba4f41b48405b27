"""Taking the steps of a plan, and telling how far it came."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.errors import HowFar, Interrupted, InventoryInUse, PlacementError
from cpu_tiers.placement.records import Consumer, Inventories, Traits
from cpu_tiers.placement.steps import (
    Change,
    CreateName,
    CreateProvider,
    SetInventories,
    SetTraits,
    State,
    Step,
)


class Writer:
    """Takes the steps, with the uuids and generations of the state they came from."""

    def __init__(self, client: PlacementClient, state: State) -> None:
        self._client = client
        self._uuids = {name: provider.uuid for name, provider in state.providers.items()}
        self._inventories = {n: p.inventories.generation for n, p in state.providers.items()}
        self._traits = {n: p.traits.generation for n, p in state.providers.items()}

    def write(self, step: Step) -> None:
        """Take one step."""
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

    def take(self, steps: Iterable[Step], progress: "Progress") -> None:
        """Take steps one by one, and say so."""
        for step in steps:
            progress.send(step.changes)
            self.write(step)
            progress.confirm()

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
        written = self._client.set_traits(self._uuids[step.provider], wanted)
        self._inventories[step.provider] = written.generation

    def reshape(self, steps: Iterable[SetInventories], consumers: Iterable[Consumer]) -> None:
        """Set inventories and allocations, all in one transaction.

        :param consumers: with their allocations by provider's uuid, see :meth:`uuid`.
        """
        inventories = {
            self._uuids[step.provider]: Inventories(
                generation=self._inventories[step.provider], by_class=step.after
            )
            for step in steps
        }
        self._client.reshape(inventories, consumers)

    def uuid(self, provider: str) -> str:
        """Return the uuid of a provider that was read or created."""
        return self._uuids[provider]


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


class Progress:
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
        """Say that these, the next ones, are on their way."""
        self._sent, self._to_come = changes, self._to_come[len(changes) :]

    def confirm(self) -> None:
        """Say that what was on its way is written."""
        self.written += self._sent
        self._sent = ()

    def drop(self) -> None:
        """Say that what was on its way is not to be written after all."""
        self._sent = ()

    def tell(self, error: HowFar, *, refused: bool) -> None:
        """Add to the error how far it came.

        :param refused: what was sent last is not written for sure.
        """
        error.report(
            written=self.written,
            unconfirmed=() if refused else self._sent,
            unwritten=(*self._sent, *self._to_come) if refused else self._to_come,
        )


def carry_out(attempt: Callable[[Progress], None]) -> tuple[Change, ...]:
    """Attempt it, with fresh reads while others write; return what was written.

    :raises PlacementError: it tells how far it came.
    :raises Interrupted: by Ctrl-C, it tells the same.
    """
    progress = Progress()
    try:
        with_fresh_reads(partial(attempt, progress))
    except PlacementError as error:
        status = error.status or 0  # a 4xx alone says for sure: not written
        progress.tell(error, refused=400 <= status < 500)
        raise
    except KeyboardInterrupt as error:
        interrupted = Interrupted()
        progress.tell(interrupted, refused=False)
        raise interrupted from error
    return tuple(progress.written)
