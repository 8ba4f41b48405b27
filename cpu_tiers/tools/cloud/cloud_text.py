"""The rows and the text of ``cpu-tiers cloud show``: the sold and the free amounts of a cloud."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from cpu_tiers.errors import printable
from cpu_tiers.model.names import PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.formatting import FormattedValue
from cpu_tiers.tools.frame.terminal import HINT, MOST_LINES, count_of, join_names, wrapped
from cpu_tiers.tools.sold.cloud_report import (
    Figure,
    HostLabel,
    ReportTable,
    Value,
    groups_table,
    hosts_table,
    left_of,
    moves_table,
    over_tables,
    promises_table,
    room_table,
    weight_table,
)
from cpu_tiers.tools.sold.sold import NOTHING, SoldAmount, SoldCloud
from cpu_tiers.tools.sold.sold_sums import TierRoom, class_sums
from cpu_tiers.tools.sold.tier_promises import uncounted_nodes

COLUMNS = (
    *("host", "disabled", "down", "provider", "class", "capacity", "used", "tiers"),
    "unsettled",
)
_CPUS = (VCPU, VCPU_SHARES, PCPU)
_BAR_CELLS = 10
_ADVICE = (
    "Resize these servers to flavors with a weight (quota:cpu_shares), or move them to hosts"
    " without tiers. Nothing is lost where cpu-tiers host audit does not find oversold."
)
_ON_NODES = (
    "Servers of {flavors} stand on NUMA nodes, and {hosts} report their shares as one amount: a"
    " node may carry more than its part. Placement does not tell; cpu-tiers host audit on the"
    " hosts does, and cpu-tiers flavor check --all --hosts says what to set."
)
_LEAST_NAME_CELLS = 24
"""The width of the names of hosts; longer names take up to half of a line."""


class _Bar(Figure):
    """A bar, which the table does not wrap."""


def columns_of(groups: Mapping[str, frozenset[str]] | None) -> tuple[str, ...]:
    """Return the columns; one has the groups of the host if there are any."""
    return (*COLUMNS, *(() if groups is None else ("groups",)))


def rows_of(
    cloud: SoldCloud, groups: Mapping[str, frozenset[str]] | None
) -> Iterator[tuple[object, ...]]:
    """Yield the row of each amount, which a text without a table does not need."""
    unsettled: dict[str, list[dict[str, object]]] = {}
    for each in cloud.unsettled:
        for host in each.hosts:
            unsettled.setdefault(host, []).append({**each._asdict(), "hosts": list(each.hosts)})
    for a in cloud.amounts:
        tiers = {name: sale._asdict() for name, sale in a.tiers.items()}
        marks = a.host in cloud.disabled, a.host in cloud.down
        row = (a.host, *marks, a.provider, a.resource_class, a.capacity, a.used)
        host_groups = [name for name, hosts in (groups or {}).items() if a.host in hosts]
        group = () if groups is None else (FormattedValue(host_groups, ", ".join),)
        consumers = FormattedValue(unsettled.get(a.host, []), _unsettled_text)
        yield (*row, FormattedValue(tiers, _tier_text), consumers, *group)


def excess_names(excesses: Sequence[SoldAmount]) -> str:
    """Return the amounts and the names of the first providers, and how many more there are."""
    texts = [
        printable(f"{a.used} of {a.capacity} {a.resource_class} of {a.provider}") for a in excesses
    ]
    more = len(texts) - MOST_LINES
    return ", ".join([*texts[:MOST_LINES], *([f"and {more} more"] if more > 0 else [])])


def _tier_text(tiers: Mapping[str, Mapping[str, int]]) -> str:
    return ", ".join(f"{printable(name)}: {sale['used']}" for name, sale in tiers.items())


def _unsettled_text(consumers: Sequence[Mapping[str, str]]) -> str:
    return ", ".join(f"{printable(each['consumer'])}: {each['kind']}" for each in consumers)


def print_cloud(
    console: Console,
    cloud: SoldCloud,
    rooms: Sequence[TierRoom] = (),
    groups: Mapping[str, frozenset[str]] | None = None,
    *,
    show_all: bool,
) -> None:
    """Print the sums, the providers over their capacity, and what is left of hosts.

    The parameters are those of :func:`~cpu_tiers.tools.page.cloud.cloud_page`.
    """
    console.print(Text(wrapped(printable(first_line(cloud)))))
    marks = ("#", ".") if console.options.ascii_only else ("█", "░")
    for table in (
        *(_classes(cloud, *marks), _tiers(cloud)),
        *(room_table(rooms), promises_table(cloud, rooms)),
    ):
        print_report(console, table, show_all=True)
    for table in over_tables(cloud):
        print_report(console, table, show_all=show_all)
    _print_moves(console, moves_table(cloud), show_all=show_all)
    weights = weight_table(cloud)
    print_report(console, weights, show_all=show_all)
    if weights.rows:
        console.print(Text(wrapped(_ADVICE)))
    flavors, hosts = uncounted_nodes(rooms, cloud)
    if flavors and hosts:
        names, hosts_as_one = printable(join_names(flavors)), count_of(hosts, "host")
        text = _ON_NODES.format(flavors=names, hosts=hosts_as_one)
        console.print(Text(wrapped(text)))
    for table in (groups_table(cloud, groups or {}), hosts_table(cloud)):
        print_report(console, _fitting(table, console.width, show_all=show_all), show_all=show_all)
    if cloud.domain:
        console.print(Text(f" Hosts are named without {printable(cloud.domain)}"))


def _print_moves(console: Console, table: ReportTable, *, show_all: bool) -> None:
    """Print a sentence for each consumer: a table has no room for commands."""
    if table.rows:
        console.print()
        console.print(Text(table.title, "bold"))
    for consumer, kind, hosts, mend in table.rows[: None if show_all else MOST_LINES]:
        line = printable(f"{consumer} on {hosts}: {kind}. {mend}")
        console.print(Text(wrapped(line, indent=" ")))
    _print_rest(console, len(table.rows), show_all=show_all)


def first_line(cloud: SoldCloud) -> str:
    """Return the numbers of hosts and consumers, with the hosts that take no servers."""
    marks = [("disabled", cloud.disabled), ("down", cloud.down)]
    stopped = ", ".join(f"{len(hosts):,} {mark}" for mark, hosts in marks if hosts)
    line = f"Hosts with CPUs: {len(cloud.hosts):,}" + (f" ({stopped})" if stopped else "")
    line += f", consumers: {len(cloud.tiers):,}{cloud.note}"
    if cloud.strangers:
        count = count_of(len(cloud.strangers), "provider")
        line += f"; not counted: {count} without nova-compute ({join_names(cloud.strangers)})"
    return line


def print_report(console: Console, report: ReportTable, *, show_all: bool) -> None:
    """Print a table of values below its title, if it has rows, and how many rows it leaves out."""
    if not report.rows:
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True)
    for name, value in zip(report.columns, report.rows[0], strict=True):
        is_number = isinstance(value, int | float | Figure)
        justify: JustifyMethod = "right" if is_number else "left"
        is_bar = isinstance(value, _Bar)
        table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=is_bar)
    for row in report.rows if show_all else report.rows[:MOST_LINES]:
        table.add_row(*map(_text, row))
    console.print()
    console.print(Text(report.title, "bold"))
    console.print(table)
    _print_rest(console, len(report.rows), show_all=show_all)


def _print_rest(console: Console, rows: int, *, show_all: bool) -> None:
    if rows > MOST_LINES and not show_all:
        console.print(f" and {rows - MOST_LINES:,} more {HINT}")


def _text(value: Value) -> Text:
    match value:
        case int():
            return Text(f"{value:,}")
        case float():
            return Text(f"{value:.3f}")
        case HostLabel():
            return Text(printable(value.text))
    return Text(printable(value))


def _classes(cloud: SoldCloud, full: str, empty: str) -> ReportTable:
    rows: list[Sequence[Value]] = []
    for name, class_sum in class_sums(cloud.amounts).items():
        # What is allocated without a capacity is more than all of it.
        used = float(class_sum.over > 0) if class_sum.left is None else 1 - class_sum.left
        cells = min(_BAR_CELLS, round(_BAR_CELLS * used))
        bar = _Bar(full * cells + empty * (_BAR_CELLS - cells))
        over = class_sum.over or Figure()
        rows.append((name, class_sum.capacity, class_sum.used, left_of(class_sum), bar, over))
    columns = ("class", "capacity", "used", "left", "used", "over")
    return ReportTable("What is left of each resource class", columns, rows)


def _tiers(cloud: SoldCloud) -> ReportTable:
    sums = class_sums(cloud.amounts)
    cpus = [name for name in _CPUS if name in sums]
    rows: list[Sequence[Value]] = [
        (tier, count, *(sums[name].tiers.get(tier, NOTHING).used for name in cpus))
        for tier, count in sorted(Counter(cloud.tiers.values()).items())
    ]
    return ReportTable("What is sold to each tier", ("tier", "consumers", *cpus), rows)


def _fitting(report: ReportTable, width: int, *, show_all: bool) -> ReportTable:
    """Return a table with the first resource classes whose columns fit."""
    rows = report.rows if show_all else report.rows[:MOST_LINES]
    widest = max((cell_len(_text(row[0]).plain) for row in rows), default=0) + 2
    cells = width - min(max(widest, _LEAST_NAME_CELLS), width // 2)
    shown, title = 1, report.title
    for name in report.columns[1:]:
        cells -= max(len(name), len("! -100 %")) + 2
        if cells < 0:
            title += f" (left out for lack of columns: {len(report.columns) - shown})"
            break
        shown += 1
    return ReportTable(title, report.columns[:shown], [row[:shown] for row in report.rows])
