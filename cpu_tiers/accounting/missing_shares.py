"""Shortfalls: the missing shares of the consumers of a host, and their additions (decision D8).

When a host starts to report VCPU_SHARES, its servers hold none, though their flavors request
some. The functions here take the holdings of a host and the owners of its consumers, and return
the shortfalls, the amounts to add to the allocations, and the limits in the way. A consumer with
any shares has no shortfall: computing and writing the shortfalls again changes nothing. Pure.
"""

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Holdings, P, Portion, ProviderName
from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, GuestCpus
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.inventory import Inventory, limits_of
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.translators.contract import ServerRequest, as_existing
from cpu_tiers.translators.shares import divide, requested_shares

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The server to which the allocations of a consumer belong.

    :param name: the name in messages, such as ``server web-1 (uuid)``.
    :param server: the uuid of the server, also if a migration is the consumer.
    :param flavor: the flavor that the allocations were made for: the old flavor
        for the migration that keeps the source of a resize.
    """

    name: str
    server: str
    flavor: Flavor
    image: Image | None = None
    project_id: str = ""
    user_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortfall:
    """The missing resources of a consumer.

    Of a consumer without any allocation, all resources of its flavor are missing; of all other
    consumers, only shares.
    """

    consumer: ConsumerId
    owner: Owner
    resources: Amounts

    @property
    def shares(self) -> int:
        """Return the shares among the missing resources."""
        return self.resources.get(VCPU_SHARES, 0)


def missing_shares(
    amounts: Mapping[ConsumerId, Amounts], owners: Mapping[ConsumerId, Owner]
) -> tuple[Shortfall, ...]:
    """Return the missing shares of consumers.

    A flavor whose extra specs for shares have a fault requests no shares, and is logged: the
    server exists, and must not fail now because of a rule that is newer (decision D72).

    :param amounts: what each consumer holds, of a provider or of a whole host.
    :param owners: a consumer without an owner has no shortfall.
    """
    requested = {
        consumer: shares_of(owner, held[VCPU])
        for consumer, owner in owners.items()
        if lacks_shares(held := amounts.get(consumer, {}))
    }
    return tuple(
        Shortfall(consumer=consumer, owner=owners[consumer], resources={VCPU_SHARES: shares})
        for consumer, shares in requested.items()
        if shares
    )


def divide_by_vcpu(
    shortfalls: Iterable[Shortfall], holdings: Holdings[P]
) -> dict[P, tuple[Shortfall, ...]]:
    """Divide the missing shares of each consumer between its providers, in proportion to VCPU.

    :return: the shortfalls by provider, without 0 shares after rounding.
    """
    by_provider: dict[P, tuple[Shortfall, ...]] = {}
    for shortfall in shortfalls:
        portion = holdings.of(shortfall.consumer)
        vcpus = {provider: a[VCPU] for provider, a in portion.items() if VCPU in a}
        parts = divide(shortfall.shares, list(vcpus.values()))
        for provider, shares in zip(vcpus, parts, strict=True):
            if shares:
                part = replace(shortfall, resources={VCPU_SHARES: shares})
                by_provider[provider] = (*by_provider.get(provider, ()), part)
    return by_provider


def lacks_shares(amounts: Amounts) -> bool:
    """Tell whether a consumer holds shared CPUs and no shares."""
    return VCPU in amounts and VCPU_SHARES not in amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """The amounts to add to the allocations of a consumer.

    :param shortfall: all amounts together.
    :param goes_to: the same amounts by provider; empty if no place is known.
    :param limits: the reasons why there is no room, by provider.
    """

    shortfall: Shortfall
    goes_to: Portion[ProviderName]
    limits: Mapping[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return the message for each provider that has no room."""
        owner = self.shortfall.owner
        return tuple(
            Fault(
                where=f"{owner.name}, flavor {owner.flavor.name}",
                given=f"asks {provider} for {limit}",
                allowed="move it to another host or resize it",
            )
            for provider, limit in self.limits.items()
        )


def plan_share_additions(
    inventories: Mapping[ProviderName, Mapping[str, Inventory]],
    holdings: Holdings[ProviderName],
    shortfalls: Iterable[Shortfall],
    *,
    along: ProviderName | None = None,
) -> tuple[Addition, ...]:
    """Return the shares to add for each consumer, in proportion to its VCPU.

    :param inventories: of all providers that have shares, or are going to have
        some. A consumer gets no shares of any other provider.
    :param shortfalls: the missing shares of each consumer, of all providers together.
    :param along: a provider whose VCPU is about to move to other providers. Its
        shares move along, so it needs no room for them.
    """
    divided = divide_by_vcpu(shortfalls, holdings)
    with_shares = {p: divided[p] for p in divided if p in {along, *inventories}}
    return tuple(
        replace(addition, limits={p: limit for p, limit in addition.limits.items() if p != along})
        for addition in additions_of(inventories, holdings.total, with_shares)
    )


def additions_of(
    inventories: Mapping[ProviderName, Mapping[str, Inventory]],
    used: Portion[ProviderName],
    shortfalls: Mapping[ProviderName, Iterable[Shortfall]],
) -> tuple[Addition, ...]:
    """Return the additions by consumer, from shortfalls by provider, with the limits.

    The smallest shortfall of a provider gets its room first, so that as few servers as
    possible are refused.

    :param inventories: that the providers have, or are going to have.
    :param used: what all consumers hold.
    """
    additions: dict[ConsumerId, Addition] = {}
    for provider, provider_shortfalls in shortfalls.items():
        stock, taken = inventories.get(provider, {}), used.of(provider)
        left = {name: i.capacity - taken.get(name, 0) for name, i in stock.items()}
        for shortfall in sorted(provider_shortfalls, key=lambda s: (s.shares, s.consumer)):
            limit = limits_of(shortfall.resources, stock, left)
            if not limit:
                left |= {name: left[name] - n for name, n in shortfall.resources.items()}
            nothing = Addition(shortfall=shortfall, goes_to=Portion())
            before = additions.get(shortfall.consumer, nothing)
            goes_to = before.goes_to + Portion({provider: shortfall.resources})
            additions[shortfall.consumer] = Addition(
                shortfall=replace(shortfall, resources=goes_to.total),
                goes_to=goes_to,
                limits={**before.limits, **({provider: limit} if limit else {})},
            )
    return tuple(additions.values())


def shares_of(owner: Owner, vcpus: int) -> int:
    """Return the shares of a server that exists: what nova-scheduler claims in a move, too."""
    server = ServerRequest(owner.flavor, owner.image)
    try:
        return requested_shares(server)
    except InvalidInput as error:  # the VCPU that the server holds is all that is known
        novas = GuestCpus(counts=CpuCounts(shared=vcpus, dedicated=0))
        shares = requested_shares(as_existing(server, novas))
        LOG.warning("%s gets %s %s: %s", owner.name, shares or "no", VCPU_SHARES, error)
        return shares
