"""A compute host as Placement has it: its root, its NUMA nodes, and who holds what of them.

Other providers of its tree, such as those of GPUs and of network agents, are
somebody else's, and left out.
"""

from collections.abc import Collection
from dataclasses import dataclass

from cpu_tiers.accounting.holdings import Holdings
from cpu_tiers.accounting.relocation import OF_NODES
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.steps import State
from cpu_tiers.placement.sync import read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementHost:
    """What a host has, and who holds it.

    :param tree: the root and the NUMA nodes, if the host reports them.
    :param state: the same, with uuids.
    :param held: by the names of the providers.
    """

    tree: ProviderTree
    state: State
    held: Holdings

    @property
    def has_nodes(self) -> bool:
        """Tell whether it reports its NUMA nodes."""
        return len(self.tree.providers) > 1

    @property
    def classes(self) -> frozenset[str]:
        """Return the resource classes that it has."""
        return frozenset(name for one in self.tree.providers for name in one.inventories)

    def uuid(self, provider: str) -> str:
        """Return the uuid of a provider."""
        return self.state.providers[provider].uuid


def read_host(client: PlacementClient, name: str) -> PlacementHost | None:
    """Return a host; ``None`` where Placement does not know it."""
    state = read_state(client, bare_tree(name))
    if name not in state.providers:
        return None
    return PlacementHost(
        tree=tree_of(state, name),
        state=state,
        held=read_holdings(client, state, state.providers.keys()),
    )


def read_holdings(client: PlacementClient, state: State, names: Collection[str]) -> Holdings:
    """Return what consumers hold of the providers of these names."""
    held: dict[str, dict[str, dict[str, int]]] = {}
    for name in sorted(names):
        for consumer, resources in client.allocations(state.providers[name].uuid).items():
            held.setdefault(consumer, {})[name] = dict(resources)
    return held


def bare_tree(name: str) -> ProviderTree:
    """Return the tree of a host that reports nothing of its own."""
    return ProviderTree(providers=(ResourceProvider(name=name),), managed_classes=OF_NODES)


def tree_of(state: State, root: str) -> ProviderTree:
    """Return what was read as a tree, the root first."""
    names = [root, *sorted(state.providers.keys() - {root})]
    return ProviderTree(
        providers=tuple(
            ResourceProvider(
                name=name,
                parent=present.parent,
                inventories=present.inventories.by_class,
                traits=present.traits.names,
            )
            for name in names
            for present in [state.providers[name]]
        ),
        managed_classes=OF_NODES,
    )
