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
from dataclasses import replace

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import is_part
from cpu_tiers.placement.errors import (
    ProviderMismatch,
    ProviderNotFound,
    ReportingCannotBeDisabled,
)
from cpu_tiers.placement.steps import (
    CreateName,
    CreateProvider,
    SetInventories,
    SetTraits,
    State,
    Step,
)


def steps(state: State, tree: ProviderTree) -> tuple[Step, ...]:
    """Return what is to be written, parents before children; nothing if all is there.

    :raises ProviderNotFound: the root is foreign, and not there.
    :raises ProviderMismatch: a provider exists under another parent, or uuid.
    :raises ReportingCannotBeDisabled: NUMA nodes or CPU shares would vanish.
    """
    _refuse_an_absent_host(state, tree)
    _refuse_other_parents(state, tree)
    refuse_vanishing_nodes(state, tree)
    _refuse_vanishing_shares(state, tree)
    tree = with_ratios(state, tree)
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
        after=_merged(before, wanted.inventories, tree.managed_classes),
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


def with_ratios(state: State, tree: ProviderTree) -> ProviderTree:
    """Return a tree with the ratios that an operator set through the API.

    A class that moves from the root to a NUMA node takes its ratio along.
    """
    root = _present(state, tree.root.name)
    return replace(
        tree,
        providers=tuple(
            replace(
                provider,
                inventories={
                    name: _with_ratio(
                        inventory, _present(state, provider.name).get(name) or root.get(name)
                    )
                    for name, inventory in provider.inventories.items()
                },
            )
            for provider in tree.providers
        ),
    )


def _present(state: State, name: str) -> Mapping[str, Inventory]:
    present = state.providers.get(name)
    return present.inventories.by_class if present else {}


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


def refuse_vanishing_nodes(state: State, tree: ProviderTree) -> None:
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
            more = (
                ". Where a provider.yaml gives it these, leave the host to nova-compute, which"
                " alone reads that file"
            )
            raise vanishing_shares(name, present.uuid, more)


def vanishing_shares(name: str, uuid: str, more: str = "") -> ReportingCannotBeDisabled:
    """Return the refusal to stop reporting the shares of a provider (decision D2).

    :param more: what else to tell.
    """
    return ReportingCannotBeDisabled(
        f"{name} reports {VCPU_SHARES}, which must not vanish: servers may hold"
        " allocations of it, and those that ask for shares would find no host."
        " Set [libvirt] report_vcpu_shares = true, and leave CPUs to share ([compute]"
        " cpu_shared_set); or, when no server is left on the host, run"
        f" openstack resource provider inventory delete {uuid}"
        f" --resource-class {VCPU_SHARES}, then repeat{more}",
        provider=name,
    )
