"""Planning the steps that bring Placement from its present state to a provider tree.

* A resource class outside of ``tree.managed_classes`` and a provider outside of the
  tree belong to another service or to the operator. They are not changed.
* Traits are added. A trait is removed only if it starts with a prefix in
  ``tree.managed_traits``, because Nova and operators set traits as well.
* If the host no longer has a NUMA node or a page size, its provider stays, and loses
  the inventories of the managed classes.
* A tree against the rules of Placement or cpu-tiers is refused here, before the first
  write, to leave no tree half written. Pure.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.model.numa import is_part
from cpu_tiers.placement import errors
from cpu_tiers.placement.steps import (
    CreateName,
    CreateProvider,
    SetInventories,
    SetTraits,
    State,
    Step,
)


def steps(state: State, tree: ProviderTree) -> tuple[Step, ...]:
    """Return the steps, parents before children; no steps if Placement has the tree already.

    :raises ProviderNotFound: another service owns the root, and Placement does not have it.
    :raises ProviderMismatch: a provider exists under another parent or with another uuid.
    :raises ReportingCannotBeDisabled: NUMA nodes or CPU shares would be removed.
    """
    name = tree.root.name
    if tree.root_is_foreign and name not in state.providers:
        raise errors.ProviderNotFound(f"Placement has no provider {name}", provider=name)
    _refuse_other_parents(state, tree)
    refuse_vanishing_nodes(state, tree)
    _refuse_vanishing_shares(state, tree)
    tree = with_ratios(state, tree)
    ours = tree.providers[1:] if tree.root_is_foreign else tree.providers
    return (
        *(CreateName(kind="resource class", name=n) for n in sorted(state.absent_classes)),
        *(CreateName(kind="trait", name=n) for n in sorted(state.absent_traits)),
        # The inventories of providers that the host no longer has are removed.
        *(_set_inventories(state, tree, name, {}) for name in sorted(_without_place(state, tree))),
        *(step for provider in ours for step in _provider_steps(state, tree, provider)),
    )


def _without_place(state: State, tree: ProviderTree) -> frozenset[str]:
    """Return the providers with inventories of managed classes that are not in the tree."""
    others = state.providers.keys() - {provider.name for provider in tree.providers}
    return frozenset(
        name for name in others if _present(state, name).keys() & tree.managed_classes
    )


def _provider_steps(state: State, tree: ProviderTree, wanted: ResourceProvider) -> Iterator[Step]:
    present = state.providers.get(wanted.name)
    if present is None:
        yield CreateProvider(provider=wanted.name, parent=wanted.parent, uuid=wanted.uuid)
    inventories = _set_inventories(state, tree, wanted.name, wanted.inventories)
    has = present.traits.names if present else frozenset()
    foreign = frozenset(name for name in has if not name.startswith(tree.managed_traits))
    traits = SetTraits(provider=wanted.name, before=has, after=foreign | wanted.traits)
    # The traits first: a server that forbids a trait could land on a provider that lacks the trait
    # only because it has not been written yet.
    if traits.changes:
        yield traits
    if inventories.changes:
        yield inventories


def _set_inventories(
    state: State, tree: ProviderTree, name: str, wanted: Mapping[str, Inventory]
) -> SetInventories:
    before = _present(state, name)
    ours = {*tree.managed_classes, *wanted}
    foreign = {name: inventory for name, inventory in before.items() if name not in ours}
    return SetInventories(provider=name, before=before, after=foreign | dict(wanted))


def with_ratios(state: State, tree: ProviderTree) -> ProviderTree:
    """Return the tree with the allocation ratios that an operator has set through the API.

    If a resource class moves from the root to a NUMA node, its ratio moves with it. The initial
    ratio of VCPU_SHARES is the ratio of VCPU beside it, as nova-compute reports it.
    """
    root = _present(state, tree.root.name)

    def with_ratios_of(provider: ResourceProvider) -> ResourceProvider:
        present = {**root, **_present(state, provider.name)}
        inventories = {
            name: _with_ratio(inventory, present.get(name))
            for name, inventory in provider.inventories.items()
        }
        vcpu, shares = inventories.get(VCPU), inventories.get(VCPU_SHARES)
        if vcpu and shares and shares.ratio_is_initial:
            ratio = vcpu.allocation_ratio
            inventories[VCPU_SHARES] = replace(shares, allocation_ratio=ratio)
        return replace(provider, inventories=inventories)

    return replace(tree, providers=tuple(map(with_ratios_of, tree.providers)))


def _present(state: State, name: str) -> Mapping[str, Inventory]:
    present = state.providers.get(name)
    return present.inventories.by_class if present else {}


def _with_ratio(wanted: Inventory, present: Inventory | None) -> Inventory:
    if present is None:
        return wanted
    # MySQL stores a FLOAT, so 1.1 would differ, and be written, at each run.
    equal = math.isclose(wanted.allocation_ratio, present.allocation_ratio, rel_tol=1e-6)
    if wanted.ratio_is_initial or equal:
        return replace(wanted, allocation_ratio=present.allocation_ratio)
    return wanted


def _refuse_other_parents(state: State, tree: ProviderTree) -> None:
    for wanted in tree.providers:
        present = state.providers.get(wanted.name)
        if present is None:
            continue
        text = f"Placement has the provider {wanted.name}"
        if wanted.uuid not in (None, present.uuid):
            raise errors.ProviderMismatch(
                f"{text} with the uuid {present.uuid}, not {wanted.uuid}: names are unique, so"
                f" rename or delete {present.uuid} first",
                provider=wanted.name,
            )
        if present.parent != wanted.parent:
            raise errors.ProviderMismatch(
                f"{text} {_under(present.parent)}, not {_under(wanted.parent)}: names are unique,"
                f" so rename or delete the provider {present.uuid} first",
                provider=wanted.name,
            )


def refuse_vanishing_nodes(state: State, tree: ProviderTree) -> None:
    """Refuse a tree without NUMA nodes, if Placement has NUMA nodes of the host in use.

    A NUMA-aware host cannot be turned back into a host that does not report its NUMA nodes.

    :raises ReportingCannotBeDisabled: Placement has NUMA nodes of the host.
    """
    if any(is_part(tree.root.name, provider.name) for provider in tree.providers):
        return
    if full := sorted(_without_place(state, tree), reverse=True):  # children first
        raise errors.ReportingCannotBeDisabled(
            f"{tree.root.name} reports its NUMA nodes ({', '.join(full)}), and that cannot be"
            " undone, because servers may hold allocations of the nodes. Set [compute]"
            " enable_numa_reporting_to_placement = true. Or, when no server is left on the host,"
            " stop nova-compute, run openstack resource provider delete for each of the uuids"
            f" {', '.join(state.providers[name].uuid for name in full)}, and repeat the command",
            provider=full[0],
        )


def _under(parent: str | None) -> str:
    return "as a root" if parent is None else f"under {parent}"


def _refuse_vanishing_shares(state: State, tree: ProviderTree) -> None:
    if any(VCPU_SHARES in provider.inventories for provider in tree.providers):
        return  # The shares may move to another provider of the tree, but are still reported.
    advice = (
        ". If a provider.yaml on the host defines the shares, let nova-compute report the host:"
        " only nova-compute reads that file"
    )
    for name, present in state.providers.items():
        if VCPU_SHARES in present.inventories.by_class.keys() & tree.managed_classes:
            raise vanishing_shares(name, present.uuid, advice)


def vanishing_shares(name: str, uuid: str, advice: str = "") -> errors.ReportingCannotBeDisabled:
    """Return the error for a provider that would stop to report its shares (decision D2)."""
    return errors.ReportingCannotBeDisabled(
        f"{name} reports {VCPU_SHARES}, which must not vanish: servers may hold"
        " allocations of it, and servers that request shares would find no host."
        " Set [libvirt] report_vcpu_shares = true, and leave shared CPUs in [compute]"
        " cpu_shared_set. Or, when no server is left on the host, run"
        f" openstack resource provider inventory delete {uuid}"
        f" --resource-class {VCPU_SHARES} and repeat the command{advice}",
        provider=name,
    )
