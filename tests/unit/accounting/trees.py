"""A host of two nodes, each of 4 CPUs, 400 shares and 1 GiB, with a disk of 10 GiB."""

from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU_SHARES as SHARES
from cpu_tiers.model.numa import OF_NODES, page_traits


def of(total: int) -> Inventory:
    return Inventory(total=total, max_unit=total)


def provider(name: str, parent: str | None = None, /, **totals: int) -> ResourceProvider:
    traits = page_traits(4, smallest=True) if "_PAGES_" in name else frozenset[str]()
    inventories = {kind: of(total) for kind, total in totals.items()}
    return ResourceProvider(name=name, parent=parent, inventories=inventories, traits=traits)


def tree(**of_root: int) -> ProviderTree:
    nodes = [
        one
        for name in ("cn_NUMA0", "cn_NUMA1")
        for one in (
            provider(name, "cn", VCPU=4, **({} if of_root.get(SHARES) else {SHARES: 400})),
            provider(f"{name}_PAGES_4", name, MEMORY_MB=1024),
        )
    ]
    return ProviderTree(providers=(provider("cn", **of_root), *nodes), managed_classes=OF_NODES)


TREE = tree(DISK_GB=10)
