"""The state of a provider tree in Placement, and the steps of writing a tree to Placement."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.placement.records import AMOUNTS, Inventories, Traits

ABSENT, PRESENT = "absent", "present"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change in Placement, in the words of the commands.

    :param provider: the name of the provider; ``Placement`` for a new resource class or
        trait, which belongs to no provider.
    :param what: the changed thing, such as ``VCPU total`` or ``trait CUSTOM_GOLD``.
    """

    provider: str
    what: str
    before: str
    after: str

    @property
    def is_of_amounts(self) -> bool:
        """Tell whether an amount of an inventory that stays is changed."""
        return self.what.rpartition(" ")[2] in AMOUNTS

    def __str__(self) -> str:
        """Return a line such as ``compute1: VCPU total 8 -> 16``."""
        return f"{self.provider}: {self.what} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderState:
    """A provider in Placement, with the name of its parent; ``None`` for a root."""

    uuid: str
    parent: str | None
    inventories: Inventories
    traits: Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The state of a provider tree in Placement.

    :param providers: the providers that Placement has, by name.
    :param absent_classes, absent_traits: the custom names that Placement lacks.
    """

    providers: Mapping[str, ProviderState]
    absent_classes: frozenset[str] = frozenset()
    absent_traits: frozenset[str] = frozenset()


def bare_tree(name: str) -> ProviderTree:
    """Return the tree of a host that is known only by its name."""
    return ProviderTree(providers=(ResourceProvider(name=name),), managed_classes=OF_NODES)


def tree_of(state: State, root: str) -> ProviderTree:
    """Return the providers that were read as a tree, the root first."""
    providers = (
        ResourceProvider(
            name=name,
            parent=state.providers[name].parent,
            inventories=state.providers[name].inventories.by_class,
            traits=state.providers[name].traits.names,
        )
        for name in sorted(state.providers, key=lambda name: (name != root, name))
    )
    return ProviderTree(providers=tuple(providers), managed_classes=OF_NODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateName:
    """Create a custom name in Placement, of the kind ``resource class`` or ``trait``."""

    kind: str
    name: str

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return the one change."""
        what = f"{self.kind} {self.name}"
        return (Change(provider="Placement", what=what, before=ABSENT, after=PRESENT),)


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateProvider:
    """Create a provider under its parent."""

    provider: str
    parent: str | None
    uuid: str | None = None

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return the one change."""
        after = PRESENT if self.parent is None else f"under {self.parent}"
        return (Change(provider=self.provider, what="provider", before=ABSENT, after=after),)


@dataclass(frozen=True, slots=True, kw_only=True)
class SetInventories:
    """Replace all inventories of a provider, also those of classes that are not managed."""

    provider: str
    before: Mapping[str, Inventory]
    after: Mapping[str, Inventory]

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return a change for each added or removed class, and for each changed amount."""
        return tuple(
            Change(provider=self.provider, what=what, before=was, after=becomes)
            for name in sorted({*self.before, *self.after})
            for what, was, becomes in _differences(
                name, self.before.get(name), self.after.get(name)
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTraits:
    """Replace all traits of a provider, also those that are not managed."""

    provider: str
    before: frozenset[str]
    after: frozenset[str]

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return a change for each added or removed trait."""
        return tuple(
            Change(
                provider=self.provider,
                what=f"trait {name}",
                before=PRESENT if name in self.before else ABSENT,
                after=PRESENT if name in self.after else ABSENT,
            )
            for name in sorted(self.before ^ self.after)
        )


Step = CreateName | CreateProvider | SetInventories | SetTraits


def _differences(
    name: str, before: Inventory | None, after: Inventory | None
) -> Iterator[tuple[str, str, str]]:
    if before is None or after is None:
        if before != after:
            yield name, _described(before), _described(after)
        return
    for amount in AMOUNTS:
        was, becomes = getattr(before, amount), getattr(after, amount)
        if was != becomes:
            yield f"{name} {amount}", str(was), str(becomes)


def _described(inventory: Inventory | None) -> str:
    if inventory is None:
        return ABSENT
    return ", ".join(f"{amount} {getattr(inventory, amount)}" for amount in AMOUNTS)
