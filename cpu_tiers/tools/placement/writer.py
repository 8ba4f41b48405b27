"""Writing the steps of a plan to Placement, and reporting which changes are written."""

import re
from collections.abc import Callable, Iterable
from functools import partial

from cpu_tiers.placement.errors import (
    DataChanged,
    Interrupted,
    InventoryInUse,
    PlacementError,
    WriteReport,
)
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
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads, write_again


class Writer:
    """Writes steps with the uuids and generations of the state in the plan.

    The generations make Placement refuse a write if another client has written the
    provider since the state was read, even if only a server was claimed on it.
    """

    def __init__(self, client: PlacementClient, state: State) -> None:
        self._client = client
        self._uuids = {name: provider.uuid for name, provider in state.providers.items()}
        self._inventories = {n: p.inventories.generation for n, p in state.providers.items()}
        self._traits = {n: p.traits.generation for n, p in state.providers.items()}

    def write(self, step: Step) -> None:
        """Write a step."""
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
        """Write steps in their order, and keep ``progress`` up to date."""
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
        written = write_inventories(self._client, self._uuids[step.provider], step, generation)
        self._count(step.provider, generation, written)

    def _set_traits(self, step: SetTraits) -> None:
        generation = self._traits[step.provider]
        written = write_traits(self._client, self._uuids[step.provider], step, generation)
        self._count(step.provider, generation, written)

    def _count(self, provider: str, read: int, written: int) -> None:
        """Keep the generation of a write, if no other client has written since the read.

        Each write adds 1 to the generation. After a write of another client, inventories and
        traits may have changed since the read, so the next write must be refused and read again.
        """
        if written == read + 1 == self._traits[provider] + 1 == self._inventories[provider] + 1:
            self._inventories[provider] = self._traits[provider] = written

    def reshape(self, steps: Iterable[SetInventories], consumers: Iterable[Consumer]) -> None:
        """Write inventories and allocations in one transaction.

        :param consumers: the consumers with their new allocations. These are keyed by the
            uuid of the provider, which :meth:`uuid` returns.
        """
        inventories = {
            self._uuids[step.provider]: Inventories(
                generation=self._inventories[step.provider], by_class=step.after
            )
            for step in steps
        }
        self._client.reshape(inventories, consumers)

    def read_again(self, step: SetInventories) -> bool:
        """Read the generation of a provider again; tell whether the generation is a new one.

        :raises DataChanged: another client has changed the inventories since they were read.
        """
        before = self._inventories[step.provider]
        present = _present_generation(self._client, self._uuids[step.provider], step)
        self._inventories[step.provider] = present
        return present != before

    def uuid(self, provider: str) -> str:
        """Return the uuid of a provider, by its name."""
        return self._uuids[provider]


def write_inventories(
    client: PlacementClient, uuid: str, step: SetInventories, generation: int
) -> int:
    """Write the inventories of a provider, also while other clients claim on it.

    :param uuid: of the provider.
    :param generation: of the provider when ``step.before`` was read.
    :return: the new generation of the provider.
    :raises DataChanged: another client has changed the inventories since they were read.
    """

    def write(generation: int) -> int:
        wanted = Inventories(generation=generation, by_class=step.after)
        return client.set_inventories(uuid, wanted).generation

    def read() -> int:
        return _present_generation(client, uuid, step)

    try:
        return write_again(client.retry_policy, write, generation, read)
    except InventoryInUse as error:
        raise _in_use(step, error) from error


def _present_generation(client: PlacementClient, uuid: str, step: SetInventories) -> int:
    """Return the generation of a provider whose inventories are as they were read before."""
    present = client.inventories(uuid)
    if present.by_class != step.before:
        raise changed(step.provider, "inventories")
    return present.generation


def write_traits(client: PlacementClient, uuid: str, step: SetTraits, generation: int) -> int:
    """Write the traits of a provider; as :func:`write_inventories`."""

    def write(generation: int) -> int:
        wanted = Traits(generation=generation, names=step.after)
        return client.set_traits(uuid, wanted).generation

    def read() -> int:
        present = client.traits(uuid)
        if present.names != step.before:
            raise changed(step.provider, "traits")
        return present.generation

    return write_again(client.retry_policy, write, generation, read)


def changed(provider: str, what: str) -> DataChanged:
    """Return the error for data of a provider that are not as they were read before."""
    return DataChanged(
        f"{provider}: another client has changed the {what} since they were read: run the command"
        " again"
    )


def _in_use(step: SetInventories, error: InventoryInUse) -> InventoryInUse:
    """Return an error with the provider and the classes, in addition to Placement's details."""
    details = " ".join(error.details)
    named = tuple(name for name in sorted(step.removed) if re.search(rf"\b{name}\b", details))
    classes = named or tuple(sorted(step.removed))
    named_error = InventoryInUse(
        f"{step.provider}: {', '.join(classes)} cannot be removed, because servers hold"
        " allocations of it: move these servers to another host, or reshape"
        f" ({'; '.join(error.details)})",
        method=error.method,
        path=error.path,
        status=error.status,
        details=error.details,
    )
    named_error.provider = step.provider
    named_error.resource_classes = classes
    return named_error


class Progress:
    """Records which changes of an operation are written, sent, and not yet sent."""

    def __init__(self) -> None:
        self.written: list[Change] = []
        self._sent: tuple[Change, ...] = ()
        self._to_come: tuple[Change, ...] = ()

    def begin(self, changes: tuple[Change, ...]) -> None:
        """Start an attempt with fresh reads.

        If a change was sent in the last attempt and is not among ``changes`` now,
        Placement has carried it out, and it counts as written.
        """
        needed = {(change.provider, change.what) for change in changes}
        self.written += [c for c in self._sent if (c.provider, c.what) not in needed]
        self._sent, self._to_come = (), changes

    def send(self, changes: tuple[Change, ...]) -> None:
        """Record that the next changes are being sent."""
        self._sent, self._to_come = changes, self._to_come[len(changes) :]

    def confirm(self) -> None:
        """Record that the sent changes are written."""
        self.written += self._sent
        self._sent = ()

    def refuse(self) -> None:
        """Record that the sent changes were refused and are not written."""
        self._sent, self._to_come = (), (*self._sent, *self._to_come)

    def drop(self) -> None:
        """Record that the sent changes were refused and are given up."""
        self._sent = ()

    def tell(self, error: WriteReport, *, refused: bool) -> None:
        """Add the changes to an error.

        :param refused: Placement has refused the sent changes, so they are not written;
            otherwise they may be written.
        """
        error.report(
            written=self.written,
            unconfirmed=() if refused else self._sent,
            unwritten=(*self._sent, *self._to_come) if refused else self._to_come,
        )


def carry_out(
    retry_policy: RetryPolicy, attempt: Callable[[Progress], None]
) -> tuple[Change, ...]:
    """Run ``attempt``, again while other clients write, and return the written changes.

    :param retry_policy: of the client.
    :param attempt: reads from Placement, plans and writes, and keeps the given
        :class:`Progress` up to date.
    :raises PlacementError: a request failed; the error lists the changes.
    :raises Interrupted: Ctrl-C was pressed; the error lists the changes.
    """
    progress = Progress()
    try:
        with_fresh_reads(retry_policy, partial(attempt, progress))
    except PlacementError as error:
        # Only a 4xx shows that the write was not carried out. After a 5xx, or without an
        # answer, the write may have been carried out, also if a repetition then gets a 4xx.
        status = error.status or 0
        progress.tell(error, refused=400 <= status < 500 and not error.resent)
        raise
    except KeyboardInterrupt as error:
        interrupted = Interrupted()
        progress.tell(interrupted, refused=False)
        raise interrupted from error
    return tuple(progress.written)
