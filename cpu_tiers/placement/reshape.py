"""Which consumers of a host get shares that they do not hold yet (decision D8).

When a host starts to report VCPU_SHARES, the servers that run on it hold
none, though their flavors ask for them. Pure: what is held and whose it is
in; amounts to add, or a refusal that names each server, out. Who is found to
hold shares is left alone, so the same question asked again adds nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.translators.contract import ServerRequest
from cpu_tiers.translators.shares import claimed_shares

LOG = logging.getLogger(__name__)


class SharesDoNotFit(InvalidInput):
    """Servers of a host ask for more shares than it has; each is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Whose allocations a consumer holds.

    :param name: how a person knows it, such as ``server web-1 (uuid)``.
    :param flavor: that the allocations were made for: the old one for the
        consumer that keeps the source of a resize.
    """

    name: str
    flavor: Flavor
    image: Image | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The shares that a consumer lacks."""

    consumer: str
    holder: Holder
    amount: int


def missing_shares(
    held: Mapping[str, Mapping[str, int]], holders: Mapping[str, Holder]
) -> tuple[Demand, ...]:
    """Return the shares that consumers of one provider lack.

    A flavor that cannot be read claims nothing, and is logged.

    :param held: consumer to resource class to amount, of this provider.
    :param holders: whose each consumer is; one that is not here lacks nothing.
    """
    demands = (
        Demand(consumer=consumer, holder=holder, amount=_claim(holder))
        for consumer, holder in holders.items()
        if lacks_shares(held.get(consumer, {}))
    )
    return tuple(demand for demand in demands if demand.amount)


def lacks_shares(resources: Mapping[str, int]) -> bool:
    """Tell whether a consumer has shared CPUs here, but no shares."""
    return VCPU in resources and VCPU_SHARES not in resources


def refuse_what_does_not_fit(
    provider: str,
    shares: Inventory,
    held: Mapping[str, Mapping[str, int]],
    demands: Iterable[Demand],
) -> None:
    """Check that the provider can hold what is asked for, all of it.

    The smallest are taken first, so as few as possible are named.

    :param provider: its name.
    :param shares: the inventory that it is going to have.
    :raises SharesDoNotFit: with a fault for each server that finds no room.
    """
    left = shares.capacity - sum(resources.get(VCPU_SHARES, 0) for resources in held.values())
    faults = []
    for demand in sorted(demands, key=lambda demand: (demand.amount, demand.consumer)):
        if demand.amount > shares.max_unit:
            limit = f"one server may have {shares.max_unit} there (max_unit)"
        elif demand.amount > left:
            limit = f"{max(left, 0)} of {shares.capacity} are left"
        else:
            left -= demand.amount
            continue
        faults.append(_fault(provider, demand, limit))
    if faults:
        raise SharesDoNotFit(faults)


def _fault(provider: str, demand: Demand, limit: str) -> Fault:
    return Fault(
        where=f"{demand.holder.name}, flavor {demand.holder.flavor.name}",
        given=f"asks for {demand.amount} {VCPU_SHARES} of {provider}, and {limit}",
        allowed="move it to another host or resize it",
    )


def _claim(holder: Holder) -> int:
    try:
        return claimed_shares(ServerRequest(holder.flavor, holder.image))
    except InvalidInput as error:
        LOG.warning("%s gets no %s: %s", holder.name, VCPU_SHARES, error)
        return 0
