"""Which consumers of a host get shares that they do not hold yet (decision D8).

When a host starts to report VCPU_SHARES, the servers that run on it hold
none, though their flavors ask for them. Pure: what is held and whose it is
in; amounts to add, and what finds no room, out. Who is found to hold shares
is left alone, so the same question asked again adds nothing.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from cpu_tiers.accounting.holdings import Holdings
from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.translators.contract import ServerRequest
from cpu_tiers.translators.shares import claimed_shares, divide

LOG = logging.getLogger(__name__)


class SharesDoNotFit(InvalidInput):
    """Servers of a host ask for more shares than it has; each is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Whose allocations a consumer holds.

    :param name: how a person knows it, such as ``server web-1 (uuid)``.
    :param server: the uuid of the server, also where a migration holds them.
    :param flavor: that the allocations were made for: the old one for the
        consumer that keeps the source of a resize.
    :param project_id, user_id: of the server.
    """

    name: str
    server: str
    flavor: Flavor
    image: Image | None = None
    project_id: str = ""
    user_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """What a consumer lacks of a provider: its shares; all, where it holds nothing.

    :param resources: resource class to amount, to be added to what it holds.
    """

    consumer: str
    owner: Owner
    resources: Mapping[str, int]

    @property
    def shares(self) -> int:
        """Return the shares among it."""
        return self.resources.get(VCPU_SHARES, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a provider has room for a shortfall.

    :param limit: why it has none; empty where it has.
    """

    shortfall: Shortfall
    limit: str

    def fault(self, provider: str) -> Fault:
        """Return what a person is told of a shortfall without room."""
        owner = self.shortfall.owner
        return Fault(
            where=f"{owner.name}, flavor {owner.flavor.name}",
            given=f"asks {provider} for {self.limit}",
            allowed="move it to another host or resize it",
        )


def missing_shares(
    held: Mapping[str, Mapping[str, int]], owners: Mapping[str, Owner]
) -> tuple[Shortfall, ...]:
    """Return the shares that consumers of one provider lack.

    A flavor that cannot be read claims nothing, and is logged.

    :param held: consumer to resource class to amount, of this provider.
    :param owners: whose each consumer is; one that is not here lacks nothing.
    """
    claims = {
        consumer: _claim(owner)
        for consumer, owner in owners.items()
        if lacks_shares(held.get(consumer, {}))
    }
    return tuple(
        Shortfall(consumer=consumer, owner=owners[consumer], resources={VCPU_SHARES: amount})
        for consumer, amount in claims.items()
        if amount
    )


def divide_by_vcpu(
    shortfalls: Iterable[Shortfall], held: Holdings
) -> dict[str, tuple[Shortfall, ...]]:
    """Return what is lacked of each provider, in proportion to the VCPU held there."""
    found: dict[str, tuple[Shortfall, ...]] = {}
    for shortfall in shortfalls:
        vcpus = {uuid: r[VCPU] for uuid, r in held[shortfall.consumer].items() if VCPU in r}
        parts = divide(shortfall.shares, list(vcpus.values()))
        for uuid, part in zip(vcpus, parts, strict=True):
            if part:
                of_provider = replace(shortfall, resources={VCPU_SHARES: part})
                found[uuid] = (*found.get(uuid, ()), of_provider)
    return found


def lacks_shares(resources: Mapping[str, int]) -> bool:
    """Tell whether a consumer has shared CPUs here, but no shares."""
    return VCPU in resources and VCPU_SHARES not in resources


def find_room(
    inventories: Mapping[str, Inventory],
    held: Mapping[str, Mapping[str, int]],
    shortfalls: Iterable[Shortfall],
) -> tuple[Verdict, ...]:
    """Return which shortfalls a provider can meet beside what is held, the smallest first.

    So as few as possible find no room.

    :param inventories: that the provider has, or is going to have, by class.
    :param held: consumer to resource class to amount, of this provider.
    """
    left = {
        name: inventory.capacity - sum(resources.get(name, 0) for resources in held.values())
        for name, inventory in inventories.items()
    }
    verdicts = []
    for shortfall in sorted(
        shortfalls, key=lambda shortfall: (shortfall.shares, shortfall.consumer)
    ):
        limits = [
            limit
            for name, amount in shortfall.resources.items()
            if (limit := limit_of(name, amount, inventories.get(name), left.get(name, 0)))
        ]
        if not limits:
            left |= {name: left[name] - amount for name, amount in shortfall.resources.items()}
        verdicts.append(Verdict(shortfall=shortfall, limit="; ".join(limits)))
    return tuple(verdicts)


def find_rooms(
    inventories: Mapping[str, Mapping[str, Inventory]],
    held: Holdings,
    shortfalls: Mapping[str, Iterable[Shortfall]],
) -> dict[str, tuple[Verdict, ...]]:
    """Return the same for each of several providers.

    :param inventories: by provider; one that is not here has none.
    """
    return {
        provider: find_room(
            inventories.get(provider, {}),
            {c: there[provider] for c, there in held.items() if provider in there},
            of_provider,
        )
        for provider, of_provider in shortfalls.items()
    }


def limit_of(name: str, amount: int, inventory: Inventory | None, left: int) -> str:
    """Return what is in the way of an amount; empty where nothing is.

    :param left: what is left of the inventory.
    """
    if inventory is None:
        return f"{amount} {name}, and there is none"
    if amount > inventory.max_unit:
        return f"{amount} {name}, and one server may have {inventory.max_unit} (max_unit)"
    if amount > left:
        return f"{amount} {name}, and {max(left, 0)} of {inventory.capacity} are left"
    if amount < inventory.min_unit or amount % inventory.step_size:
        units = f"min_unit {inventory.min_unit}, step_size {inventory.step_size}"
        return f"{amount} {name}, and that is no amount to have ({units})"
    return ""


def refuse_what_does_not_fit(provider: str, verdicts: Iterable[Verdict]) -> None:
    """Check that a provider has room for all.

    :param provider: its name.
    :raises SharesDoNotFit: with a fault for each server that finds no room.
    """
    faults = [verdict.fault(provider) for verdict in verdicts if verdict.limit]
    if faults:
        raise SharesDoNotFit(faults)


def _claim(owner: Owner) -> int:
    try:
        return claimed_shares(ServerRequest(owner.flavor, owner.image))
    except InvalidInput as error:
        LOG.warning("%s gets no %s: %s", owner.name, VCPU_SHARES, error)
        return 0
