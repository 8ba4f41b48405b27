"""The VCPU_SHARES of a host in Placement: the capacity, and the shares of each consumer."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.client import PlacementClient


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShares:
    """The shares of a host and of all providers below it.

    :param capacity: ``None`` if the host reports no shares.
    :param held: the shares that each consumer holds, by the uuid of the
        consumer; 0 for a consumer that holds only other resources of the host.
    """

    capacity: int | None
    held: Mapping[str, int]


def read_shares(client: PlacementClient, host: str) -> HostShares:
    """Return the shares of a host.

    :param host: the name of its root provider.
    :raises InvalidInput: Placement has no such provider.
    """
    root = client.find_provider(host)
    if root is None:
        raise InvalidInput.of(
            f"host {host}",
            "Placement has no provider of that name",
            "name it as Nova does: --hostname",
        )
    capacities, held = [], Counter[str]()
    for provider in client.providers_in_tree(root.uuid):
        inventory = client.inventories(provider.uuid).by_class.get(VCPU_SHARES)
        if inventory is not None:
            capacities.append(inventory.capacity)
        for consumer, resources in client.allocations(provider.uuid).items():
            held[consumer] += resources.get(VCPU_SHARES, 0)
    return HostShares(capacity=sum(capacities) if capacities else None, held=held)
