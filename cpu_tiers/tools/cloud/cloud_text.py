"""The rows and the text of ``cpu-tiers cloud show``: the sold and the free amounts of a cloud."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cpu_tiers.errors import printable
from cpu_tiers.model.names import PCPU, VCPU, VCPU_SHARES
from cpu_tiers.tools.frame.formatting import FormattedValue
from cpu_tiers.tools.frame.terminal import HINT, MOST_LINES, count_of, join_names, wrapped
from cpu_tiers.tools.sold.sold import NOTHING, SoldAmount, SoldCloud, UnsettledConsumer
from cpu_tiers.tools.sold.sold_sums import (
    ClassSum,
    TierRoom,
    class_order,
    class_sums,
    group_sums,
    host_sums,
    percent,
)
from cpu_tiers.tools.sold.tier_promises import (
    OversoldHost,
    TierPromise,
    oversold_hosts,
    tier_promises,
)

COLUMNS = (
    *("host", "disabled", "down", "provider", "class", "capacity", "used", "tiers"),
    "unsettled",
)
_CPUS = (VCPU, VCPU_SHARES, PCPU)
_BAR_CELLS = 10
_LEFT_OF_HOSTS = "What is left of each host, the least first"
_LEFT_OF_GROUPS = "What is left of each group of hosts"
_LEAST_NAME_CELLS = 24
"""The width of the names of hosts; longer names take up to half of a line."""


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
    if cloud.amounts:
        marks = ("#", ".") if console.options.ascii_only else ("█", "░")
        print_table(console, "What is left of each resource class", _classes(cloud, *marks))
    if cloud.tiers:
        print_table(console, "What is sold to each tier", _tiers(cloud))
    if rooms:
        print_table(
            console, "How many more servers of each tier fit, of one tier alone", _more(rooms)
        )
        _print_promises(console, list(tier_promises(rooms, cloud)))
    _print_excesses(console, cloud, show_all=show_all)
    _print_oversold(console, cloud, oversold_hosts(cloud), show_all=show_all)
    if groups:
        sums_by_group = group_sums(cloud.amounts, groups)

        def group_label(name: str) -> str:
            disabled = len(groups[name] & cloud.disabled)
            number = f"{len(groups[name]):,}" + (f", {disabled:,} disabled" if disabled else "")
            return f"{printable(name)} ({number})"

        _print_left(
            console, "group", sums_by_group, group_label, _LEFT_OF_GROUPS, show_all=show_all
        )

    def host_label(host: str) -> str:
        marks = " (disabled)" * (host in cloud.disabled) + " (down)" * (host in cloud.down)
        return printable(cloud.short_name(host)) + marks

    if hosts := host_sums(amount for amount in cloud.amounts if amount.host in cloud.hosts):
        _print_left(console, "host", hosts, host_label, _LEFT_OF_HOSTS, show_all=show_all)
    if cloud.domain:
        console.print(Text(f" Hosts are named without {printable(cloud.domain)}"))


def _print_excesses(console: Console, cloud: SoldCloud, *, show_all: bool) -> None:
    for title, amounts in (
        ("Over the capacity", cloud.excesses),
        ("Reserved, but used: reserve less, or move servers", cloud.of_reserved),
    ):
        if amounts:
            print_table(console, title, _over(cloud, amounts, show_all=show_all))
            print_rest(console, len(amounts), show_all=show_all)
    if cloud.unsettled:
        console.print()
        console.print(Text("Moves that are not over, or have failed", "bold"))
        for each in cloud.unsettled[: None if show_all else MOST_LINES]:
            line = printable(_unsettled_line(each, cloud))
            console.print(Text(wrapped(line, indent=" ")))
        print_rest(console, len(cloud.unsettled), show_all=show_all)


def _unsettled_line(consumer: UnsettledConsumer, cloud: SoldCloud) -> str:
    """Return what a consumer has where, where its server is, and the command that mends it."""
    hosts = ", ".join(map(cloud.short_name, consumer.hosts))
    line = f"{consumer.consumer} on {hosts}: {consumer.kind}"
    if consumer.is_on and consumer.is_on not in consumer.hosts:
        line += f", which Nova has on {cloud.short_name(consumer.is_on)}"
    return f"{line}. {consumer.mend}"


def _print_oversold(
    console: Console, cloud: SoldCloud, hosts: Sequence[OversoldHost], *, show_all: bool
) -> None:
    """Print what servers without a tier leave of the sold CPUs of a host while all servers run."""
    if not hosts:
        return
    table = text_table("host", "shares", "sold", "without a tier", "kept, cgroup v1", "kept, v2")
    for host in hosts if show_all else hosts[:MOST_LINES]:
        table.add_row(
            Text(printable(cloud.short_name(host.host))),
            f"{int(host.shares):,}",
            f"{host.sold:,}",
            f"{host.untiered:,}",
            *(percent(float(host.kept(version))) for version in (1, 2)),
        )
    print_table(console, "Servers without a tier take what these hosts sell", table)
    print_rest(console, len(hosts), show_all=show_all)
    advice = (
        "Resize these servers to flavors with a weight (quota:cpu_shares), or move them to hosts"
        " without tiers. Nothing is lost where cpu-tiers host audit does not find oversold."
    )
    console.print(Text(wrapped(advice)))


def _print_promises(console: Console, promises: Sequence[TierPromise]) -> None:
    """Print a line for each tier and kind of host."""
    if not promises:
        return
    table = text_table("tier", "hosts", "CPUs", "sold", "kept when full", "SCS-0100")
    for each in promises:
        table.add_row(
            Text(printable(each.tier)),
            f"{each.hosts:,}",
            f"{each.cpus:,}",
            f"{float(each.sold):.3f}",
            f"{float(each.promised):.3f}",
            "V" if each.has_class else "-",
        )
    print_table(console, "CPUs of the flavor that stands for each tier, by kind of host", table)


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


def print_table(console: Console, title: str, table: Table) -> None:
    """Print a table below an empty line and a title."""
    console.print()
    console.print(Text(title, "bold"))
    console.print(table)


def print_rest(console: Console, count: int, *, show_all: bool) -> None:
    """Print how many lines a table leaves out."""
    if count > MOST_LINES and not show_all:
        console.print(f" and {count - MOST_LINES:,} more {HINT}")


def text_table(*columns: str) -> Table:
    """Return a table with texts in the first column and numbers in all others."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=True)
    first, *others = columns
    table.add_column(Text(first), overflow="fold")
    for column in others:
        table.add_column(Text(column), justify="right", overflow="fold")
    return table


def _classes(cloud: SoldCloud, full: str, empty: str) -> Table:
    table = text_table("class", "capacity", "used", "left", "used", "over")
    table.columns[4].no_wrap = True
    for name, class_sum in class_sums(cloud.amounts).items():
        # What is allocated without a capacity is more than all of it.
        used = float(class_sum.over > 0) if class_sum.left is None else 1 - class_sum.left
        cells = min(_BAR_CELLS, round(_BAR_CELLS * used))
        table.add_row(
            Text(printable(name)),
            f"{class_sum.capacity:,}",
            f"{class_sum.used:,}",
            _part(class_sum),
            full * cells + empty * (_BAR_CELLS - cells),
            f"{class_sum.over:,}" if class_sum.over else "",
        )
    return table


def _tiers(cloud: SoldCloud) -> Table:
    sums = class_sums(cloud.amounts)
    cpus = [name for name in _CPUS if name in sums]
    table = text_table("tier", "consumers", *cpus)
    for tier, count in sorted(Counter(cloud.tiers.values()).items()):
        sold = (sums[name].tiers.get(tier, NOTHING).used for name in cpus)
        table.add_row(Text(printable(tier)), f"{count:,}", *(f"{amount:,}" for amount in sold))
    return table


def _more(rooms: Sequence[TierRoom]) -> Table:
    table = text_table("tier", "flavor", "more")
    table.columns[1].justify = "left"
    for room in rooms:
        table.add_row(
            Text(printable(room.tier)), Text(printable(room.flavor + room.note)), room.text
        )
    return table


def _over(cloud: SoldCloud, amounts: Sequence[SoldAmount], *, show_all: bool) -> Table:
    table = text_table("provider", "class", "capacity", "used")
    table.columns[1].justify = "left"
    for a in amounts if show_all else amounts[:MOST_LINES]:
        names = (cloud.short_name(a.host, a.provider), a.resource_class)
        texts = (Text(printable(name)) for name in names)
        table.add_row(*texts, f"{a.capacity:,}", f"{a.used:,}")
    return table


def _print_left(
    console: Console,
    kind: str,
    sums: Mapping[str, Mapping[str, ClassSum]],
    label: Callable[[str], str],
    title: str,
    *,
    show_all: bool,
) -> None:
    """Print the free amounts, with the resource classes that fit.

    :param label: returns the label of a line from the key of its sums.
    """
    labels = {key: label(key) for key in islice(sums, None if show_all else MOST_LINES)}
    names = class_order(name for classes in sums.values() for name in classes)
    widest = max(map(cell_len, labels.values())) + 2
    cells_of_labels = min(max(widest, _LEAST_NAME_CELLS), console.width // 2)
    shown = _fitting(names, console.width - cells_of_labels)
    if hidden := len(names) - len(shown):
        title += f" (left out for lack of columns: {hidden})"
    table = text_table(kind, *shown)
    for key, text in labels.items():
        cells = (sums[key].get(name) for name in shown)
        table.add_row(Text(text), *("" if cell is None else _part(cell) for cell in cells))
    print_table(console, title, table)
    print_rest(console, len(sums), show_all=show_all)


def _fitting(names: Iterable[str], cells: int) -> list[str]:
    """Return the first resource classes whose columns fit into a number of cells."""
    shown: list[str] = []
    for name in names:
        cells -= max(len(name), len("! -100 %")) + 2
        if cells < 0:
            break
        shown.append(name)
    return shown


def _part(class_sum: ClassSum) -> str:
    """Return the part that is left, in percent; a mark if a provider is over its capacity."""
    mark = "! " if class_sum.over else ""
    return f"{mark}{percent(class_sum.left)}"
