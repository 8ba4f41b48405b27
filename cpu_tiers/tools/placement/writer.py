"""Writing the steps of a plan to Placement, and reporting which changes are written."""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.placement import errors
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
        # Traits are read after inventories. If another client has written in between, a write of
        # traits is refused, and they are read again.
        self._generations = {n: p.inventories.generation for n, p in state.providers.items()}

    def write(self, step: Step) -> None:
        """Write a step."""
        match step:
            case CreateName(kind="trait"):
                self._client.create_trait(step.name)
            case CreateName():
                self._client.create_resource_class(step.name)
            case CreateProvider():
                parent = None if step.parent is None else self._uuids[step.parent]
                created = self._client.create_provider(
                    step.provider, parent_uuid=parent, provider_uuid=step.uuid
                )
                self._uuids[step.provider] = created.uuid
                self._generations[step.provider] = 0
            case SetInventories() | SetTraits():
                generation = self._generations[step.provider]
                written = write_all(self._client, self._uuids[step.provider], step, generation)
                # Each write adds 1 to the generation. After a write of another client, inventories
                # and traits may have changed since the read, so the next write must be refused.
                if written == generation + 1:
                    self._generations[step.provider] = written

    def take(self, steps: Iterable[Step], progress: "Progress") -> None:
        """Write steps in their order, and keep ``progress`` up to date."""
        for step in steps:
            progress.send(step.changes)
            self.write(step)
            progress.confirm()

    def reshape(self, steps: Iterable[SetInventories], consumers: Iterable[Consumer]) -> None:
        """Write inventories and allocations in one transaction.

        :param consumers: with their new allocations, by the uuids that :meth:`uuid` returns.
        """
        inventories = {
            self._uuids[step.provider]: Inventories(
                generation=self._generations[step.provider], by_class=step.after
            )
            for step in steps
        }
        self._client.reshape(inventories, consumers)

    def read_again(self, step: SetInventories) -> bool:
        """Read the generation of a provider again; tell whether the generation is a new one.

        :raises DataChanged: another client has changed the inventories since they were read.
        """
        before = self._generations[step.provider]
        present = _present_generation(self._client, self._uuids[step.provider], step)
        self._generations[step.provider] = present
        return present != before

    def uuid(self, provider: str) -> ProviderId:
        """Return the uuid of a provider, by its name."""
        return ProviderId(self._uuids[provider])


def write_all(
    client: PlacementClient, uuid: str, step: SetInventories | SetTraits, generation: int
) -> int:
    """Write the inventories or the traits of a provider, also while other clients claim on it.

    :param uuid: of the provider.
    :param generation: of the provider when ``step.before`` was read.
    :return: the new generation of the provider.
    :raises DataChanged: another client has changed ``step.before``.
    """

    def write(generation: int) -> int:
        if isinstance(step, SetTraits):
            traits = Traits(generation=generation, names=step.after)
            return client.set_traits(uuid, traits).generation
        inventories = Inventories(generation=generation, by_class=step.after)
        return client.set_inventories(uuid, inventories).generation

    def read() -> int:
        return _present_generation(client, uuid, step)

    try:
        return write_again(client.retry_policy, write, generation, read)
    except errors.InventoryInUse as error:
        _name_provider(step, error)
        raise


def _present_generation(
    client: PlacementClient, uuid: str, step: SetInventories | SetTraits
) -> int:
    """Return the generation of a provider whose inventories or traits are ``step.before``."""
    if isinstance(step, SetTraits):
        traits = client.traits(uuid)
        if traits.names != step.before:
            raise changed(step.provider, "traits")
        return traits.generation
    inventories = client.inventories(uuid)
    if inventories.by_class != step.before:
        raise changed(step.provider, "inventories")
    return inventories.generation


def changed(provider: str, what: str) -> errors.DataChanged:
    """Return the error for data of a provider that have changed since the read."""
    return errors.DataChanged(
        f"{provider}: another client has changed the {what} since they were read: run the command"
        " again"
    )


def _name_provider(step: SetInventories | SetTraits, error: errors.InventoryInUse) -> None:
    """Name the provider and the classes in an error, in addition to Placement's details."""
    removed = sorted(frozenset(step.before) - frozenset(step.after))
    details = " ".join(error.details)
    named = tuple(name for name in removed if re.search(rf"\b{name}\b", details))
    error.provider, error.resource_classes = step.provider, named or tuple(removed)
    message = (
        f"{step.provider}: {', '.join(error.resource_classes)} cannot be removed, because servers"
        " hold allocations of it: move these servers to another host, or reshape"
        f" ({'; '.join(error.details)})"
    )
    error.args = (message,)


class Progress:
    """Records which changes of an operation are written, sent, and not yet sent."""

    def __init__(self) -> None:
        self.written: list[Change] = []
        self._sent: tuple[Change, ...] = ()
        self._to_come: tuple[Change, ...] = ()

    @property
    def changes(self) -> tuple[Sequence[Change], Sequence[Change], Sequence[Change]]:
        """Return the changes that are written, perhaps written, and not written."""
        return self.written, self._sent, self._to_come

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
    except errors.PlacementError as error:
        # Only a 4xx shows that the write was not carried out. After a 5xx, or without an
        # answer, the write may have been carried out, also if a repetition then gets a 4xx.
        if 400 <= (error.status or 0) < 500 and not error.resent:
            progress.refuse()
        error.report(*progress.changes)
        raise
    except KeyboardInterrupt as error:
        interrupted = errors.Interrupted()
        interrupted.report(*progress.changes)
        raise interrupted from error
    return tuple(progress.written)
