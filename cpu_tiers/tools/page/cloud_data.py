"""The data sets of the page of a cloud: values by field, as charts and tables take them.

A host is a choice of the page; its key has the number of the host, and not its name. Pure.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.sold.sold import SoldCloud, SoldPart
from cpu_tiers.tools.sold.sold_sums import class_order, class_sums, host_sums, least_left, percent


class AuditFinding(NamedTuple):
    """A finding of ``host audit`` that ``host audit --fix`` has not fixed.

    :param uuid: of the guest; empty for a finding about the host.
    """

    kind: str
    where: str
    found: str
    do: str
    uuid: str = ""


class GuestFigures(NamedTuple):
    """What a guest is promised and was given, by the metrics of its host.

    :param floor: in CPUs.
    :param due: what was due to the guest while it wanted to run.
    :param ran: what it ran, in the unit of ``due``: CPUs, or seconds of CPU time.
    """

    uuid: str
    name: str
    tier: str
    floor: float | None = None
    due: float | None = None
    ran: float | None = None

    @property
    def short(self) -> float | None:
        """Return the part of what was due that the guest did not get; ``None`` if unknown."""
        if self.due is None or self.ran is None or not self.due > 0:
            return None
        return max(0.0, 1 - self.ran / self.due)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedHost:
    """What an audit or a watch says of a host.

    :param host: the name of the host's root provider.
    """

    host: str
    findings: tuple[AuditFinding, ...] = ()
    guests: tuple[GuestFigures, ...] = ()


LEAST = "least of all classes"
"""The name of the view of the heat map with the least part of all resource classes."""

MOST_IN_A_ROW = 32
"""Hosts in a row of the heat map."""

FEW = 12
"""With up to so many hosts, the heat map has their names in the cells."""

MOST_CONSUMERS = 50_000
"""With more consumers, the page has the consumers of each tier and host together."""

_OF_GUESTS = {VCPU: "vcpu", VCPU_SHARES: "shares", PCPU: "pcpu", MEMORY_MB: "memory"}


class CloudData:
    """A cloud as data of a page.

    The parameters are those of :func:`~cpu_tiers.tools.page.cloud.cloud_page`.

    :ivar sums: of the hosts with CPUs, the hosts with the greatest need first.
    :ivar keys: the key of each host's choice, by the name of the root provider.
    :ivar classes: the resource classes of the hosts with CPUs.
    :ivar tiers: the tiers of consumers: those with names first, as they were given.
    """

    def __init__(
        self,
        cloud: SoldCloud,
        tiers: Sequence[str],
        reports: Collection[AuditedHost],
        server_names: Mapping[str, str] | None = None,
    ) -> None:
        self._cloud, self._reports, self._names = cloud, reports, server_names or {}
        self.short_name = cloud.short_name
        self.sums = host_sums(amount for amount in cloud.amounts if amount.host in cloud.hosts)
        names = sorted({amount.host for amount in cloud.amounts})
        self.keys = {name: f"host-{number}" for number, name in enumerate(names, start=1)}
        self.classes = class_order(name for sums in self.sums.values() for name in sums)
        self._tier_of = cloud.tiers
        present = set(self._tier_of.values())
        self.tiers = [*filter(present.__contains__, tiers), *sorted(present.difference(tiers))]

    def cells(self) -> Iterator[Mapping[str, str | int | float | None]]:
        """Yield the cells of the heat map: for each host and resource class what is left."""
        across = self.columns()
        for number, (host, sums) in enumerate(sorted(self.sums.items())):
            is_disabled = host in self._cloud.disabled
            place: Mapping[str, str | int] = {
                "host": self.short_name(host),
                "key": f"#{self.keys[host]}",
                "disabled": int(is_disabled),
                "row": number // across,
                "column": number % across,
            }
            over = sum(class_sum.over for class_sum in sums.values())
            least = least_left(sums, default=math.nan)
            named = f"{host}, disabled" if is_disabled else host
            yield {**place, **_cell(LEAST, None if math.isnan(least) else least, over, named)}
            for name, class_sum in sums.items():
                yield {**place, **_cell(name, class_sum.left, class_sum.over, named)}

    @property
    def has_many_consumers(self) -> bool:
        """Tell whether the page has no consumer of its own, to be small."""
        return len(self._tier_of) > MOST_CONSUMERS

    def columns(self) -> int:
        """Return how many hosts are in a row of the heat map."""
        return min(len(self.sums), 4) if len(self.sums) <= FEW else MOST_IN_A_ROW

    def sold(self) -> Iterator[Mapping[str, str | int | float]]:
        """Yield the part of each resource class that each tier has, and the part that is left."""
        for name, class_sum in class_sums(self._cloud.amounts).items():
            whole = max(class_sum.capacity, class_sum.used)
            for tier, sale in class_sum.tiers.items() if whole else ():
                yield {
                    "class": name,
                    "tier": tier,
                    "order": self.tiers.index(tier),
                    "amount": sale.used,
                    "part": sale.used / whole,
                }

    def consumers(self) -> list[Mapping[str, str | int]]:
        """Return the number of consumers of each tier."""
        count = Counter(self._tier_of.values())
        return [{"tier": tier, "consumers": count[tier]} for tier in self.tiers]

    def amounts(self) -> Iterator[Mapping[str, str | int | float | None]]:
        """Yield the resource classes of the providers of each host."""
        for amount in self._cloud.amounts:
            provider = self.short_name(amount.host, amount.provider)
            whole = amount.capacity
            yield {
                "choice": self.keys[amount.host],
                "name": f"{provider}: {amount.resource_class}",
                "capacity": whole,
                "used": amount.used,
                "part": amount.used / whole if whole > 0 else float(amount.is_over),
                "label": f"{'! ' if amount.is_over else ''}{amount.used:,} of {amount.capacity:,}",
            }

    def guests(self) -> Iterator[Mapping[str, str | int | float | None]]:
        """Yield what each consumer has of each host, in the order of tiers.

        With many consumers, those of a tier are together.
        """
        figures = {guest.uuid: guest for report in self._reports for guest in report.guests}
        held: dict[tuple[str, str], list[SoldPart]] = {}
        for part in self._cloud.parts:
            key = part.tier if self.has_many_consumers else part.consumer
            held.setdefault((part.host, key), []).append(part)
        place = {tier: number for number, tier in enumerate(self.tiers)}
        numbers = Counter(self._names.values())
        for (host, consumer), parts in sorted(
            held.items(), key=lambda item: (item[0][0], place[item[1][0].tier], item[0][1])
        ):
            amounts = Counter[str]()
            for part in parts:
                amounts[part.resource_class] += part.amount
            if self.has_many_consumers:
                consumer = f"{len({part.consumer for part in parts}):,} consumers"
            guest, name = figures.get(consumer), self._names.get(consumer)
            # Equal labels would be one bar.
            shown = name if name and numbers[name] == 1 else f"{name or ''} {consumer}".strip()
            yield {
                "choice": self.keys[host],
                "tier": parts[0].tier,
                "consumer": consumer,
                "name": name,
                "label": f"{parts[0].tier}, {shown}",
                **{field: amounts.get(name) for name, field in _OF_GUESTS.items()},
                "others": _others(amounts),
                "cpus": amounts[VCPU] + amounts[PCPU],
                "providers": ", ".join(dict.fromkeys(part.provider for part in parts)),
                **_measured(guest),
            }

    def findings(self) -> Iterator[Mapping[str, str]]:
        """Yield the open findings."""
        for report in sorted(self._reports, key=lambda report: report.host):
            for finding in report.findings:
                place = {"choice": self.keys[report.host], "host": report.host}
                yield {**place, **finding._asdict()}

    def floors(self) -> Iterator[Mapping[str, str | float | None]]:
        """Yield the promises of measured guests, and the part that they did not get."""
        for report in self._reports:
            for guest in report.guests:
                yield {
                    "host": report.host,
                    "guest": guest.name,
                    "tier": guest.tier or "no tier",
                    "floor": guest.floor,
                    "short": guest.short,
                }


def _cell(name: str, left: float | None, over: int, host: str) -> Mapping[str, str | float | None]:
    marks = ", a provider is over its capacity" if over else ""
    return {
        "class": name,
        "left": left,
        "over": int(bool(over)),
        "label": f"{'!' if over else ''}{percent(left).removesuffix(' %')}",
        "about": f"{host}: {'none' if left is None else percent(left)} of {name} left{marks}",
    }


def _measured(guest: GuestFigures | None) -> Mapping[str, str | float | None]:
    """Return the fields of a guest that a metric may have."""
    name, floor, short = (guest.name, guest.floor, guest.short) if guest else (None, None, None)
    return {
        "guest": name,
        "floor": None if floor is None else round(floor, 3),
        "short": None if short is None else percent(short),
    }


def _others(amounts: Mapping[str, int]) -> str:
    return ", ".join(
        f"{name} {amounts[name]:,}" for name in class_order(amounts) if name not in _OF_GUESTS
    )
