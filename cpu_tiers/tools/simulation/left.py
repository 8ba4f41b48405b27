"""What of each host is left: the sums of a host's tree, and the order of hosts by need.

Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.simulation.sold import NOTHING, SoldAmount, TierSale

FIRST_CLASSES = (VCPU, VCPU_SHARES, PCPU, MEMORY_MB, "DISK_GB")
"""The resource classes that are shown first, in this order."""


def percent(part: float | None) -> str:
    """Return a part in percent, such as ``12 %``; ``-`` for no part."""
    return "-" if part is None else f"{round(100 * part)} %"  # a format has -0, too


class ClassSum(NamedTuple):
    """The sums of a resource class over some providers.

    :param over: how many of the providers are over their capacity.
    """

    capacity: int
    used: int
    over: int
    tiers: Mapping[str, TierSale]

    @property
    def left(self) -> float | None:
        """Return the part of the capacity that is left; ``None`` without a capacity.

        The part is negative if more is allocated than the capacity.
        """
        return 1 - self.used / self.capacity if self.capacity > 0 else None


class TierRoom(NamedTuple):
    """How many more servers of a tier a cloud takes, as if the other tiers got no servers.

    :param flavor: the smallest flavor of the tier, for which the number is.
    :param is_exact: ``False`` if the search was cut short; then more servers may fit.
    """

    tier: str
    flavor: str
    more: int
    is_exact: bool = True

    @property
    def text(self) -> str:
        """Return the number."""
        return f"{'' if self.is_exact else 'at least '}{self.more:,}"


def class_sums(amounts: Iterable[SoldAmount]) -> Mapping[str, ClassSum]:
    """Return the sums by resource class, in the order in which they are shown.

    The number of servers of a tier is the sum over the providers: a server with parts of several
    providers counts once for each.
    """
    by_class: dict[str, list[SoldAmount]] = {}
    for amount in amounts:
        by_class.setdefault(amount.resource_class, []).append(amount)
    return {name: _sum(by_class[name]) for name in class_order(by_class)}


def _sum(amounts: Sequence[SoldAmount]) -> ClassSum:
    tiers: dict[str, TierSale] = {}
    for amount in amounts:
        for name, sale in amount.tiers.items():
            had = tiers.get(name, NOTHING)
            tiers[name] = TierSale(had.servers + sale.servers, had.used + sale.used)
    return ClassSum(
        sum(amount.capacity for amount in amounts),
        sum(amount.used for amount in amounts),
        sum(amount.is_over for amount in amounts),
        tiers,
    )


def class_order(names: Iterable[str]) -> list[str]:
    """Return resource classes in the order in which they are shown, each of them once."""
    given = frozenset(names)
    return [
        *(name for name in FIRST_CLASSES if name in given),
        *sorted(given.difference(FIRST_CLASSES)),
    ]


def host_sums(amounts: Iterable[SoldAmount]) -> Mapping[str, Mapping[str, ClassSum]]:
    """Return the sums by host and resource class, the hosts with the greatest need first.

    Hosts with a provider over its capacity come first, then those with the least left: the least
    part of a resource class. A host without any capacity comes last.
    """
    by_host: dict[str, list[SoldAmount]] = {}
    for amount in amounts:
        by_host.setdefault(amount.host, []).append(amount)
    sums = {host: class_sums(of_host) for host, of_host in by_host.items()}
    return {host: sums[host] for host in sorted(sums, key=lambda host: (*_need(sums[host]), host))}


def group_sums(
    amounts: Iterable[SoldAmount], groups: Mapping[str, frozenset[str]]
) -> Mapping[str, Mapping[str, ClassSum]]:
    """Return the sums by group of hosts and resource class; a host may be in several groups.

    :param groups: the names of the hosts of each group.
    """
    by_host: dict[str, list[SoldAmount]] = {}
    for amount in amounts:
        by_host.setdefault(amount.host, []).append(amount)
    return {
        name: class_sums(amount for host in hosts for amount in by_host.get(host, ()))
        for name, hosts in groups.items()
    }


def _need(sums: Mapping[str, ClassSum]) -> tuple[int, float]:
    over = sum(of_class.over for of_class in sums.values())
    return (-over, least_left(sums, default=2.0))


def least_left(sums: Mapping[str, ClassSum], *, default: float) -> float:
    """Return the least part that is left of a resource class."""
    return min(
        (of_class.left for of_class in sums.values() if of_class.left is not None),
        default=default,
    )
