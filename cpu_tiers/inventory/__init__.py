"""From a host and the options of nova.conf to the provider tree of the host.

:func:`build_tree` calls every reporter (see :mod:`cpu_tiers.inventory.contract`)
and merges the providers that the reporters return. Pure: no I/O, no Nova.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from cpu_tiers.errors import ExtensionError, FaultList
from cpu_tiers.inventory import cpus, memory, shares
from cpu_tiers.inventory.contract import AllocationRatio, Host, InventoryOptions, Reporter
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import DISK_GB, NUMA_SERVER, names_of_trait
from cpu_tiers.model.numa import NO_NUMA_TRAIT, OF_NODES, OF_TREE

__all__ = ["BUILT_IN", "AllocationRatio", "Host", "InventoryOptions", "Reporter", "build_tree"]

BUILT_IN: Mapping[str, Reporter] = {
    "cpus": cpus.report,
    "disk": memory.report_disk,
    "memory": memory.report,
    "numa": cpus.report_nodes,
    "shares": shares.report,
}
"""The reporters of cpu-tiers itself, by the names of their entry points."""


def build_tree(
    host: Host, options: InventoryOptions, reporters: Mapping[str, Reporter] = BUILT_IN
) -> ProviderTree:
    """Return the provider tree of a host.

    :param reporters: the reporters by name; ``cpu_tiers.extensions.load("cpu_tiers.inventory")``
        returns the reporters of all installed distributions.
    :raises InvalidInput: the host cannot satisfy an option; all faults at once.
    :raises ExtensionError: two reporters contradict each other.
    """
    faults = FaultList()
    providers = {host.name: ResourceProvider(name=host.name)}
    reported_by: dict[tuple[str, str], str] = {}
    for name, reporter in reporters.items():
        with faults:
            for provider in reporter(host, options):
                _refuse_doubles(name, provider, reported_by)
                _merge(providers, provider)
    faults.raise_if_any()
    managed = OF_NODES | {NUMA_SERVER} | {resource_class for _, resource_class in reported_by}
    # Unless the size of the disk is known, the DISK_GB that Placement has is left alone.
    if host.disk_gb is not None:
        managed |= {DISK_GB}
    return ProviderTree(
        providers=_parents_first(providers),
        managed_classes=managed,
        managed_traits=(*names_of_trait(NO_NUMA_TRAIT), *OF_TREE),
    )


def _refuse_doubles(
    name: str, provider: ResourceProvider, reported_by: dict[tuple[str, str], str]
) -> None:
    for resource_class in provider.inventories:
        other = reported_by.setdefault((provider.name, resource_class), name)
        if other != name:
            raise ExtensionError(
                f"the reporters {other!r} and {name!r} both report {resource_class} "
                f"of {provider.name}; uninstall one"
            )


def _merge(providers: dict[str, ResourceProvider], new: ResourceProvider) -> None:
    known = providers.setdefault(new.name, new)
    if known.parent != new.parent:
        raise ExtensionError(
            f"provider {new.name} is reported under {known.parent} and under {new.parent}"
        )
    providers[new.name] = replace(
        known,
        inventories={**known.inventories, **new.inventories},
        traits=known.traits | new.traits,
    )


def _parents_first(providers: Mapping[str, ResourceProvider]) -> tuple[ResourceProvider, ...]:
    # A reporter may return a child before another reporter returns its parent, but Placement
    # refuses a provider whose parent does not exist yet.
    ordered: dict[str | None, ResourceProvider] = {}
    waiting: Iterable[ResourceProvider] = providers.values()
    while waiting:
        ready = [p for p in waiting if p.parent is None or p.parent in ordered]
        if not ready:
            orphans = ", ".join(f"{p.name} under {p.parent}" for p in waiting)
            raise ExtensionError(f"providers without a way to the root: {orphans}")
        ordered.update({p.name: p for p in ready})
        waiting = [p for p in waiting if p.name not in ordered]
    return tuple(ordered.values())
