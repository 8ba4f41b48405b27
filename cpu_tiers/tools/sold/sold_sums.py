"""The sums of what is sold: by resource class, by host and by group of hosts. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.tools.sold.sold import FIRST_CLASSES, SoldAmount, TierSale, added


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

    :param flavor: the flavor that stands for the tier, for which the number is.
    :param on_nodes: the names of the flavors of the tier whose servers stand on NUMA nodes.
    :param shares, vcpus: the shares that a server of the flavor requests, and its shared vCPUs.
    :param is_exact: ``False`` if the search was cut short; then more servers may fit.
    :param note: for which flavors the flavor stands, to follow its name.
    """

    tier: str
    flavor: str
    more: int
    is_exact: bool = True
    note: str = ""
    shares: int = 0
    vcpus: int = 0
    on_nodes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """Return the number."""
        return f"{'' if self.is_exact else 'at least '}{self.more:,}"


def class_sums(amounts: Iterable[SoldAmount]) -> Mapping[str, ClassSum]:
    """Return the sums by resource class, in the order of the table.

    The number of servers of a tier is the sum over the providers: a server with parts of several
    providers counts once for each.
    """
    by_class = _grouped(amounts, lambda amount: amount.resource_class)
    return {name: _sum(by_class[name]) for name in class_order(by_class)}


def _grouped(
    amounts: Iterable[SoldAmount], key: Callable[[SoldAmount], str]
) -> dict[str, list[SoldAmount]]:
    groups: dict[str, list[SoldAmount]] = {}
    for amount in amounts:
        groups.setdefault(key(amount), []).append(amount)
    return groups


def _sum(amounts: Sequence[SoldAmount]) -> ClassSum:
    return ClassSum(
        sum(amount.capacity for amount in amounts),
        sum(amount.used for amount in amounts),
        sum(amount.is_over for amount in amounts),
        added((tier, *sale) for amount in amounts for tier, sale in amount.tiers.items()),
    )


def class_order(names: Iterable[str]) -> list[str]:
    """Return resource classes in the order of the table, each class once."""
    given = frozenset(names)
    return [
        *(name for name in FIRST_CLASSES if name in given),
        *sorted(given.difference(FIRST_CLASSES)),
    ]


def host_sums(amounts: Iterable[SoldAmount]) -> Mapping[str, Mapping[str, ClassSum]]:
    """Return the sums by host and resource class, the hosts with the greatest need first.

    Hosts with a provider over its capacity come first, then the hosts with the least left: the
    least part of a resource class. A host without any capacity comes last.
    """
    by_host = _grouped(amounts, lambda amount: amount.host)
    sums = {host: class_sums(host_amounts) for host, host_amounts in by_host.items()}

    def need(host: str) -> tuple[int, float, str]:
        over = sum(class_sum.over for class_sum in sums[host].values())
        return -over, least_left(sums[host], default=2.0), host

    return {host: sums[host] for host in sorted(sums, key=need)}


def group_sums(
    amounts: Iterable[SoldAmount], groups: Mapping[str, frozenset[str]]
) -> Mapping[str, Mapping[str, ClassSum]]:
    """Return the sums by group of hosts and resource class; a host may be in several groups.

    :param groups: the names of the hosts of each group.
    """
    by_host = _grouped(amounts, lambda amount: amount.host)
    return {
        name: class_sums(amount for host in hosts for amount in by_host.get(host, ()))
        for name, hosts in groups.items()
    }


def least_left(sums: Mapping[str, ClassSum], *, default: float) -> float:
    """Return the least part that is left of a resource class."""
    return min(
        (class_sum.left for class_sum in sums.values() if class_sum.left is not None),
        default=default,
    )
