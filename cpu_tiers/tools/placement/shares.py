"""The VCPU_SHARES of a host in Placement, and the host's resource classes with an excess."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.providers import Excess, find_excesses
from cpu_tiers.tools.placement.client import PlacementClient


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShares:
    """The shares of a host and of all providers below it, and what is allocated too much there.

    :param capacity: ``None`` if the host reports no shares.
    :param held: the shares that each consumer holds, by the uuid of the
        consumer; 0 for a consumer that holds only other resources of the host.
    :param excesses: the resource classes, of any kind, with more allocated than the capacity.
    """

    capacity: int | None
    held: Mapping[str, int]
    excesses: tuple[Excess, ...] = ()


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
    capacities, held, excesses = [], Counter[str](), list[Excess]()
    for provider in client.providers_in_tree(root.uuid):
        inventories, used = client.inventories(provider.uuid).by_class, Counter[str]()
        if VCPU_SHARES in inventories:
            capacities.append(inventories[VCPU_SHARES].capacity)
        for consumer, resources in client.allocations(provider.uuid).items():
            held[consumer] += resources.get(VCPU_SHARES, 0)
            used.update(resources)
        excesses += find_excesses(provider.name, inventories, used)
    return HostShares(
        capacity=sum(capacities) if capacities else None, held=held, excesses=tuple(excesses)
    )
