"""A compute host in Placement: the root provider, the NUMA nodes, and the consumers.

Other providers of the tree, such as GPUs and network agents, are left out: this library neither
writes their inventories nor heals their allocations here.
"""

from collections.abc import Collection
from dataclasses import dataclass

from cpu_tiers.accounting.holdings import (
    Amounts,
    ConsumerId,
    Holdings,
    Portion,
    ProviderId,
    ProviderName,
)
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.placement.steps import State, bare_tree, tree_of
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import read_state


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementHost:
    """The provider tree of a host, and the holdings of its consumers.

    :param tree: the root, and the NUMA nodes if the host reports them.
    :param state: the same providers with their uuids.
    :param holdings: of these providers.
    """

    tree: ProviderTree
    state: State
    holdings: Holdings[ProviderName]

    @property
    def has_nodes(self) -> bool:
        """Tell whether the host reports its NUMA nodes."""
        return len(self.tree.providers) > 1

    @property
    def classes(self) -> frozenset[str]:
        """Return the resource classes of the host."""
        return frozenset(name for p in self.tree.providers for name in p.inventories)

    def uuid(self, provider: ProviderName) -> ProviderId:
        """Return the uuid of a provider."""
        return ProviderId(self.state.providers[provider].uuid)


def read_host(client: PlacementClient, name: str) -> PlacementHost | None:
    """Return a host; ``None`` if Placement does not know it."""
    state = read_state(client, bare_tree(name))
    if name not in state.providers:
        return None
    return PlacementHost(
        tree=tree_of(state, name),
        state=state,
        holdings=read_holdings(client, state, state.providers.keys()),
    )


def read_holdings(
    client: PlacementClient, state: State, names: Collection[str]
) -> Holdings[ProviderName]:
    """Return the holdings of the providers with these names."""
    portions: dict[ConsumerId, dict[ProviderName, Amounts]] = {}
    for name in sorted(names):
        for consumer, amounts in client.allocations(state.providers[name].uuid).items():
            portions.setdefault(consumer, {})[ProviderName(name)] = amounts
    return Holdings({consumer: Portion(portion) for consumer, portion in portions.items()})
