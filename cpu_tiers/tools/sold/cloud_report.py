"""What ``cloud show`` says of a cloud: tables of values, for the terminal and the page. Pure."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.tools.sold.sold import SoldAmount, SoldCloud
from cpu_tiers.tools.sold.sold_sums import (
    ClassSum,
    TierRoom,
    class_order,
    group_sums,
    host_sums,
    percent,
)
from cpu_tiers.tools.sold.tier_promises import oversold_hosts, tier_promises


class HostLabel(NamedTuple):
    """The name of a host or of its provider in a table, and the name of the root provider."""

    text: str
    host: str


class Figure(str):
    """A text in place of a number, such as ``12 %``."""

    __slots__ = ()


Value = str | int | float | HostLabel
"""A text, a number, or a host; an empty text is an empty cell."""


class ReportTable(NamedTuple):
    """A table with a row for each thing that its title names."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]


def over_tables(cloud: SoldCloud) -> tuple[ReportTable, ReportTable]:
    """Return the providers over their capacity, and those with servers on what is reserved."""
    reserved = "Reserved, but used: reserve less, or move servers"
    return (
        _providers(cloud, "Over the capacity", cloud.excesses),
        _providers(cloud, reserved, cloud.of_reserved),
    )


def _providers(cloud: SoldCloud, title: str, amounts: Sequence[SoldAmount]) -> ReportTable:
    rows = [
        (
            HostLabel(cloud.short_name(each.host, each.provider), each.host),
            *(each.resource_class, each.capacity, each.used),
        )
        for each in amounts
    ]
    return ReportTable(title, ("provider", "class", "capacity", "used"), rows)


def moves_table(cloud: SoldCloud) -> ReportTable:
    """Return the consumers of moves that are not over, and the commands that mend them."""
    title = "Moves that are not over, or have failed"
    rows = []
    for each in cloud.unsettled:
        is_elsewhere = each.is_on and each.is_on not in each.hosts
        nova = f", which Nova has on {cloud.short_name(each.is_on)}" if is_elsewhere else ""
        hosts = ", ".join(map(cloud.short_name, each.hosts))
        rows.append((each.consumer, f"{each.kind}{nova}", hosts, each.mend))
    return ReportTable(title, ("consumer", "is", "hosts", "what to do"), rows)


def room_table(rooms: Sequence[TierRoom]) -> ReportTable:
    """Return how many more servers of each tier fit."""
    rows = [
        (room.tier, room.flavor + room.note, room.more if room.is_exact else Figure(room.text))
        for room in rooms
    ]
    title = "How many more servers of each tier fit, of one tier alone"
    return ReportTable(title, ("tier", "flavor", "more"), rows)


def promises_table(cloud: SoldCloud, rooms: Sequence[TierRoom]) -> ReportTable:
    """Return what one server of each tier is sold; no rows if no host sells shares."""
    rows: list[Sequence[Value]] = [
        (
            *(each.tier, each.hosts, each.cpus, float(each.sold), float(each.promised)),
            Figure("V" if each.has_class else "-"),
        )
        for each in tier_promises(rooms, cloud)
    ]
    title = "CPUs of the flavor that stands for each tier, by kind of host"
    columns = ("tier", "hosts", "CPUs", "sold", "kept when full", "SCS-0100")
    return ReportTable(title, columns, rows)


def weight_table(cloud: SoldCloud) -> ReportTable:
    """Return what servers without a tier leave of the sold CPUs while all servers run."""
    rows: list[Sequence[Value]] = [
        (
            HostLabel(cloud.short_name(each.host, each.provider), each.host),
            *(int(each.shares), each.sold, each.untiered),
            *(Figure(percent(float(each.kept(version)))) for version in (1, 2)),
        )
        for each in oversold_hosts(cloud)
    ]
    title = "Servers without a tier take what these hosts sell"
    columns = ("host", "shares", "sold", "without a tier", "kept, cgroup v1", "kept, v2")
    return ReportTable(title, columns, rows)


def groups_table(cloud: SoldCloud, groups: Mapping[str, frozenset[str]]) -> ReportTable:
    """Return what is left of each group of hosts, with the numbers of its hosts."""
    labels = dict[str, Value]()
    for name, hosts in groups.items():
        disabled = len(hosts & cloud.disabled)
        also = f", {disabled:,} disabled" if disabled else ""
        labels[name] = f"{name} ({len(hosts):,}{also})"
    title = "What is left of each group of hosts"
    return _left(title, "group", labels, group_sums(cloud.amounts, groups))


def hosts_table(cloud: SoldCloud) -> ReportTable:
    """Return what is left of each host, the least first."""
    sums = host_sums(amount for amount in cloud.amounts if amount.host in cloud.hosts)
    labels = dict[str, Value]()
    for host in sums:
        marks = " (disabled)" * (host in cloud.disabled) + " (down)" * (host in cloud.down)
        labels[host] = HostLabel(cloud.short_name(host) + marks, host)
    return _left("What is left of each host, the least first", "host", labels, sums)


def _left(
    title: str,
    kind: str,
    labels: Mapping[str, Value],
    sums: Mapping[str, Mapping[str, ClassSum]],
) -> ReportTable:
    names = class_order(name for classes in sums.values() for name in classes)
    rows = [(labels[key], *map(left_of, map(sums[key].get, names))) for key in sums]
    return ReportTable(title, (kind, *names), rows)


def left_of(class_sum: ClassSum | None) -> Figure:
    """Return the part that is left; ``!`` marks a provider over its capacity."""
    if class_sum is None:
        return Figure()
    return Figure(f"{'! ' if class_sum.over else ''}{percent(class_sum.left)}")
