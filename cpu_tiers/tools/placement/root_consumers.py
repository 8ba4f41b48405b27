"""The consumers that a reshape moves from a root provider to NUMA nodes."""

from collections.abc import Mapping, Set

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, ProviderId
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.placement.records import Consumer
from cpu_tiers.placement.steps import State
from cpu_tiers.tools.placement.client import PlacementClient


def moving_classes(tree: ProviderTree) -> Set[str]:
    """Return the resource classes of NUMA nodes that the root does not have."""
    return OF_NODES - tree.root.inventories.keys()


def consumers_of_root(
    client: PlacementClient, state: State, tree: ProviderTree
) -> dict[ConsumerId, Consumer]:
    """Return the consumers that hold classes which the root of ``tree`` is going to lose."""
    present, moving = state.providers.get(tree.root.name), moving_classes(tree)
    if present is None or not moving & present.inventories.by_class.keys():
        return {}
    return moving_consumers(client, ProviderId(present.uuid), moving, {})


def moving_consumers(
    client: PlacementClient,
    root: ProviderId,
    moving: Set[str],
    known: Mapping[ConsumerId, Consumer],
) -> dict[ConsumerId, Consumer]:
    """Return the consumers that hold some of the classes of the root.

    :param known: consumers that are read again only if they hold something else of the root.
    """

    def read(uuid: ConsumerId, amounts: Amounts) -> Consumer:
        before = known.get(uuid)
        if before is not None and before.allocations.of(root) == amounts:
            return before
        return client.consumer(uuid)

    consumers = {
        uuid: read(uuid, amounts)
        for uuid, amounts in client.allocations(root).items()
        if moving & amounts.keys()
    }
    # A consumer may have let go of the root between the two reads.
    return {
        uuid: consumer
        for uuid, consumer in consumers.items()
        if moving & consumer.allocations.of(root).keys()
    }
