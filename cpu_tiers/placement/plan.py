"""What to write so that Placement has a provider tree; what is ours, and what is not.

Pure: from the state that was read and the tree that is wanted to steps, in
the order in which they must be taken. The rules:

* a class outside ``tree.managed_classes`` and a provider outside the tree are
  somebody else's, and stay as they are;
* traits are added, and removed only where ``tree.managed_traits`` has them:
  Nova and operators set their own;
* a NUMA node or page size that the host no longer has keeps its provider, but
  nothing of ours in it;
* what must not be refused half-way is refused here, before the first write.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import is_part
from cpu_tiers.placement.errors import (
    ProviderMismatch,
    ProviderNotFound,
    ReportingCannotBeDisabled,
)
from cpu_tiers.placement.records import AMOUNTS, Inventories, Traits

ABSENT, PRESENT = "absent", "present"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One thing that differs, as a person reads it.

    :param provider: the provider's name, or ``Placement`` for a name that all share.
    """

    provider: str
    what: str
    before: str
    after: str

    def __str__(self) -> str:
        """Return one line, such as ``compute1: VCPU total 8 -> 16``."""
        return f"{self.provider}: {self.what} {self.before} -> {self.after}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderState:
    """A provider as it was read; ``parent`` is a name."""

    uuid: str
    parent: str | None
    inventories: Inventories
    traits: Traits


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What Placement has of a tree: its providers by name, and the names it lacks."""

    providers: Mapping[str, ProviderState]
    absent_classes: frozenset[str] = frozenset()
    absent_traits: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateName:
    """Create a custom ``resource class`` or ``trait``."""

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
    """Replace a provider's inventories: ours as wanted, the others as they were."""

    provider: str
    before: Mapping[str, Inventory]
    after: Mapping[str, Inventory]

    @property
    def removed(self) -> frozenset[str]:
        """Return the classes that go."""
        return frozenset(self.before) - frozenset(self.after)

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return a change for each class that comes or goes, and for each amount."""
        return tuple(
            Change(provider=self.provider, what=what, before=before, after=after)
            for name in sorted({*self.before, *self.after})
            for what, before, after in _differences(
                name, self.before.get(name), self.after.get(name)
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SetTraits:
    """Replace a provider's traits: ours as wanted, the others as they were."""

    provider: str
    before: frozenset[str]
    after: frozenset[str]

    @property
    def changes(self) -> tuple[Change, ...]:
        """Return a change for each trait that comes or goes."""
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


def steps(state: State, tree: ProviderTree) -> tuple[Step, ...]:
    """Return what is to be written, parents before children; nothing if all is there.

    :raises ProviderNotFound: the root is foreign, and not there.
    :raises ProviderMismatch: a provider exists under another parent, or uuid.
    :raises ReportingCannotBeDisabled: NUMA nodes or CPU shares would vanish.
    """
    _refuse_an_absent_host(state, tree)
    _refuse_other_parents(state, tree)
    _refuse_vanishing_nodes(state, tree)
    _refuse_vanishing_shares(state, tree)
    ours = tree.providers[1:] if tree.root_is_foreign else tree.providers
    return (
        *(CreateName(kind="resource class", name=n) for n in sorted(state.absent_classes)),
        *(CreateName(kind="trait", name=n) for n in sorted(state.absent_traits)),
        *_emptying_steps(state, tree),
        *(step for provider in ours for step in _provider_steps(state, tree, provider)),
    )


def _emptying_steps(state: State, tree: ProviderTree) -> Iterator[Step]:
    """Yield what empties the providers of ours that the host no longer has."""
    for name in sorted(_without_place(state, tree)):
        before = state.providers[name].inventories.by_class
        yield SetInventories(
            provider=name, before=before, after=_merged(before, {}, tree.managed_classes)
        )


def _without_place(state: State, tree: ProviderTree) -> frozenset[str]:
    """Return the providers that have something of ours, but no place in the tree."""
    wanted = {provider.name for provider in tree.providers}
    return frozenset(
        name
        for name, present in state.providers.items()
        if name not in wanted and present.inventories.by_class.keys() & tree.managed_classes
    )


def _provider_steps(state: State, tree: ProviderTree, wanted: ResourceProvider) -> Iterator[Step]:
    present = state.providers.get(wanted.name)
    if present is None:
        yield CreateProvider(provider=wanted.name, parent=wanted.parent, uuid=wanted.uuid)
    before = present.inventories.by_class if present else {}
    inventories = SetInventories(
        provider=wanted.name,
        before=before,
        after=_merged(
            before, _with_ratios(state, tree, wanted.inventories, before), tree.managed_classes
        ),
    )
    if inventories.changes:
        yield inventories
    has = present.traits.names if present else frozenset()
    foreign = frozenset(name for name in has if not name.startswith(tree.managed_traits))
    traits = SetTraits(provider=wanted.name, before=has, after=foreign | wanted.traits)
    if traits.changes:
        yield traits


def _merged(
    present: Mapping[str, Inventory], wanted: Mapping[str, Inventory], managed: Iterable[str]
) -> dict[str, Inventory]:
    ours = frozenset(managed) | frozenset(wanted)
    foreign = {name: inventory for name, inventory in present.items() if name not in ours}
    return foreign | dict(wanted)


def _with_ratios(
    state: State,
    tree: ProviderTree,
    wanted: Mapping[str, Inventory],
    present: Mapping[str, Inventory],
) -> dict[str, Inventory]:
    """Return inventories with the ratios that an operator set through the API.

    A class that moves from the root to a NUMA node takes its ratio along.
    """
    root = state.providers.get(tree.root.name)
    former = {**(root.inventories.by_class if root else {}), **present}
    return {name: _with_ratio(inventory, former.get(name)) for name, inventory in wanted.items()}


def _with_ratio(wanted: Inventory, present: Inventory | None) -> Inventory:
    """Keep the ratio that Placement has, if ours is for a new inventory alone.

    A ratio that is equal in single precision is kept too: MySQL stores a
    FLOAT, and 1.1 would else be written at every run.
    """
    if present is None:
        return wanted
    equal = math.isclose(wanted.allocation_ratio, present.allocation_ratio, rel_tol=1e-6)
    if wanted.ratio_is_initial or equal:
        return replace(wanted, allocation_ratio=present.allocation_ratio)
    return wanted


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


def _refuse_an_absent_host(state: State, tree: ProviderTree) -> None:
    name = tree.root.name
    if tree.root_is_foreign and name not in state.providers:
        raise ProviderNotFound(f"Placement has no provider {name}", provider=name)


def _refuse_other_parents(state: State, tree: ProviderTree) -> None:
    for wanted in tree.providers:
        present = state.providers.get(wanted.name)
        if present is not None and wanted.uuid not in (None, present.uuid):
            raise ProviderMismatch(
                f"Placement has the provider {wanted.name} as {present.uuid}, not as"
                f" {wanted.uuid}: names are unique, rename or delete that one first",
                provider=wanted.name,
            )
        if present is not None and present.parent != wanted.parent:
            raise ProviderMismatch(
                f"Placement has the provider {wanted.name} {_under(present.parent)}, not"
                f" {_under(wanted.parent)}: names are unique, rename or delete that one"
                f" ({present.uuid}) first",
                provider=wanted.name,
            )


def _refuse_vanishing_nodes(state: State, tree: ProviderTree) -> None:
    """Spec: turning a NUMA-aware host into one that is not is not supported."""
    if any(is_part(tree.root.name, provider.name) for provider in tree.providers):
        return
    if full := sorted(_without_place(state, tree), reverse=True):  # children first
        raise ReportingCannotBeDisabled(
            f"{tree.root.name} reports its NUMA nodes ({', '.join(full)}), and that cannot be"
            " undone: servers hold allocations of them. Set [compute]"
            " enable_numa_reporting_to_placement = true; or, when no server is left on the host,"
            " stop nova-compute, run openstack resource provider delete for each of these"
            " (their uuids:"
            f" {', '.join(state.providers[name].uuid for name in full)}), then repeat",
            provider=full[0],
        )


def _under(parent: str | None) -> str:
    return "as a root" if parent is None else f"under {parent}"


def _refuse_vanishing_shares(state: State, tree: ProviderTree) -> None:
    if any(VCPU_SHARES in provider.inventories for provider in tree.providers):
        return  # moved to another provider of the tree, perhaps, but still reported
    for name, present in state.providers.items():
        if VCPU_SHARES in present.inventories.by_class and VCPU_SHARES in tree.managed_classes:
            raise vanishing_shares(name, present.uuid)


def vanishing_shares(name: str, uuid: str) -> ReportingCannotBeDisabled:
    """Return the refusal to stop reporting the shares of a provider (decision D2)."""
    return ReportingCannotBeDisabled(
        f"{name} reports {VCPU_SHARES}, which must not vanish: servers may hold"
        " allocations of it, and those that ask for shares would find no host."
        " Set [libvirt] report_vcpu_shares = true, and leave CPUs to share ([compute]"
        " cpu_shared_set); or, when no server is left on the host, run"
        f" openstack resource provider inventory delete {uuid}"
        f" --resource-class {VCPU_SHARES}, then repeat",
        provider=name,
    )
