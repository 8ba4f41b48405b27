"""The page of a cloud: all hosts as a heat map, what is sold to which tier, and each host."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from cpu_tiers.tools.page import charts
from cpu_tiers.tools.page.cloud_data import MOST_CONSUMERS, AuditedHost, CloudData
from cpu_tiers.tools.page.document import (
    Cell,
    DataTable,
    Page,
    PageChart,
    PageLink,
    PageSection,
    PageTable,
    Row,
)
from cpu_tiers.tools.sold.cloud_report import (
    HostLabel,
    ReportTable,
    Value,
    groups_table,
    hosts_table,
    moves_table,
    over_tables,
    promises_table,
    room_table,
)
from cpu_tiers.tools.sold.sold import NOTHING, SoldCloud
from cpu_tiers.tools.sold.sold_sums import TierRoom, class_sums


def cloud_page(
    cloud: SoldCloud,
    tiers: Sequence[str],
    reports: Collection[AuditedHost],
    source: str,
    server_names: Mapping[str, str] | None = None,
    rooms: Sequence[TierRoom] = (),
    groups: Mapping[str, frozenset[str]] | None = None,
) -> Page:
    """Return the page of a cloud.

    :param tiers: the names of the tiers, the best first.
    :param reports: what audits and watches say of hosts.
    :param source: where and when the cloud was read.
    :param server_names: the names of servers by their ids; other consumers are shown by their ids.
    :param rooms: how many more servers of each tier fit.
    :param groups: the names of the hosts of each group.
    """
    data = CloudData(cloud, tiers, reports, server_names)
    return Page(
        title="The CPUs of the cloud",
        texts=_texts(cloud, data, source),
        sections=[
            *_sections(cloud, data, rooms),
            *_section(data, "groups", "Groups of hosts", groups_table(cloud, groups or {})),
            _audits(data, reports),
            _hosts(cloud, data),
            _host(data, has_names=bool(server_names)),
        ],
        datasets=_datasets(data),
        choices={key: name for name, key in data.keys.items()},
        back="All hosts",
    )


def _texts(cloud: SoldCloud, data: CloudData, source: str) -> list[str]:
    """Return the sentences at the top of the page."""
    disabled = f" Disabled: {len(cloud.disabled):,}." if cloud.disabled else ""
    disabled += f" Down: {len(cloud.down):,}." if cloud.down else ""
    over = f"{len(cloud.excesses):,}" if cloud.excesses else "nothing"
    texts = [
        source,
        f"Hosts with CPUs: {len(cloud.hosts):,}.{disabled} Consumers: {len(cloud.tiers):,}."
        f" Over the capacity: {over}.",
    ]
    if cloud.note:
        texts.append(f"{cloud.note.removeprefix('; ')}.")
    if cloud.strangers:
        names = ", ".join(cloud.strangers)
        texts.append(f"Not counted, because no nova-compute has these providers: {names}.")
    if cloud.domain:
        texts.append(f"Hosts are named without {cloud.domain}.")
    if data.has_many_consumers:
        texts.append(
            f"With more than {MOST_CONSUMERS:,} consumers, the page does not list each of them:"
            " the consumers of a tier on a host are together."
        )
    return texts


def _datasets(data: CloudData) -> dict[str, Sequence[Row]]:
    return {
        "cells": list(data.cells()),
        "sold": list(data.sold()),
        "consumers": data.consumers(),
        "amounts": list(data.amounts()),
        "guests": list(data.guests()),
        "findings": list(data.findings()),
        "floors": list(data.floors()),
    }


def _sections(
    cloud: SoldCloud, data: CloudData, rooms: Sequence[TierRoom]
) -> Iterator[PageSection]:
    """Yield the sections about the cloud as a whole, those that have content."""
    if cloud.hosts:
        chart = PageChart(
            title="What is left of each host, in percent",
            summary="A cell is a host; hosts are sorted by name, from the left to the right. A"
            " dark cell has little left, and a gray cell is a disabled host. A black frame and the"
            " mark ! are a host that is over its capacity. A click shows the host.",
            chart=charts.heat_map(data.classes, len(cloud.hosts)),
        )
        yield PageSection(key="left", title="Hosts at a glance", parts=[chart])
    for key, table in zip(("over", "reserved"), over_tables(cloud), strict=True):
        yield from _section(data, key, table.title.partition(":")[0], table)
    yield from _section(data, "moves", "Moves", moves_table(cloud))
    if cloud.tiers:
        yield PageSection(key="sold", title="Sold", parts=_sold(cloud, data))
    yield from _section(data, "more", "Room", room_table(rooms), promises_table(cloud, rooms))


def _section(data: CloudData, key: str, title: str, *tables: ReportTable) -> Iterator[PageSection]:
    """Yield the section with those of the tables that have rows."""
    if parts := [_table(data, table) for table in tables if table.rows]:
        yield PageSection(key=key, title=title, parts=parts)


def _table(data: CloudData, table: ReportTable) -> PageTable:
    rows = [tuple(_cell(data, value) for value in row) for row in table.rows]
    return PageTable(title=table.title, columns=table.columns, rows=rows)


def _cell(data: CloudData, value: Value) -> Cell:
    if isinstance(value, HostLabel):
        return PageLink(text=value.text, to=data.keys[value.host])
    return round(value, 3) if isinstance(value, float) else value


def _sold(cloud: SoldCloud, data: CloudData) -> list[PageChart | PageTable]:
    sums = class_sums(cloud.amounts)
    return [
        PageChart(
            title="Sold of each resource class, by tier",
            summary="The bar is the part of the capacity that each tier has; the rest is left.",
            chart=charts.sold_by_tier(list(sums), data.tiers),
        ),
        PageChart(
            title="Consumers by tier",
            summary="A consumer is a server. A migration is a further consumer until it ends.",
            chart=charts.consumers_by_tier(data.tiers),
        ),
        PageTable(
            title="Amounts",
            columns=("class", "capacity", "used", *data.tiers),
            rows=[
                (name, s.capacity, s.used, *(s.tiers.get(t, NOTHING).used for t in data.tiers))
                for name, s in sums.items()
            ],
        ),
    ]


def _audits(data: CloudData, reports: Collection[AuditedHost]) -> PageSection:
    parts: list[PageChart | PageTable] = []
    findings = list(data.findings())
    if findings:
        rows = [(_link(data, f["host"]), f["kind"], f["where"], f["found"]) for f in findings]
        columns = ("host", "kind", "where", "found")
        summary = "The number of findings that no audit has fixed."
        chart = charts.findings_by_kind()
        parts += [
            PageChart(title="Open findings by kind", summary=summary, chart=chart),
            PageTable(title="Open findings", columns=columns, rows=rows),
        ]
    if any(guest.short is not None for report in reports for guest in report.guests):
        parts.append(
            PageChart(
                title="CPU time that was due and missing",
                summary="A mark is a guest: the part of the CPU time due to it that it did not"
                " get while it wanted to run.",
                chart=charts.short_by_tier([*data.tiers]),
            )
        )
    hosts = len({report.host for report in reports})
    text = f"Hosts with a file of an audit or a watch: {hosts:,}."
    if not reports:
        text += " The option --audit adds what audits and watches of hosts say."
    elif not findings:
        text += " No finding is open."
    return PageSection(key="audits", title="Promised and delivered", texts=[text], parts=parts)


def _hosts(cloud: SoldCloud, data: CloudData) -> PageSection:
    tables = [_table(data, hosts_table(cloud))]
    if others := [(_link(data, host),) for host in data.keys if host not in data.sums]:
        title = "Other providers, without CPUs"
        tables.append(PageTable(title=title, columns=("provider",), rows=others))
    return PageSection(key="hosts", title="Hosts", parts=tables)


def _host(data: CloudData, *, has_names: bool) -> PageSection:
    return PageSection(
        key="host",
        title="Providers and guests",
        is_about_choice=True,
        parts=[
            PageChart(
                title="Used of each resource class",
                summary="A bar longer than the gray bar is over the capacity.",
                chart=charts.amounts_of_host(),
            ),
            PageChart(
                title="Guests",
                summary="The bar is the number of VCPU and PCPU of a consumer.",
                chart=charts.guests_of_host(data.tiers),
            ),
            DataTable(
                title="What each consumer has of the host",
                columns={
                    "tier": "tier",
                    **({"name": "server"} if has_names else {}),
                    "consumer": "consumer",
                    "guest": "guest",
                    "vcpu": "VCPU",
                    "pcpu": "PCPU",
                    "shares": "shares",
                    "memory": "MEMORY_MB",
                    "others": "others",
                    "providers": "providers",
                    "floor": "floor (CPUs)",
                    "short": "part that is missing",
                },
                dataset="guests",
                empty="Nothing of this host is allocated.",
            ),
            DataTable(
                title="Open findings",
                columns={"kind": "kind", "where": "where", "found": "found", "do": "do"},
                dataset="findings",
                empty="No audit of this host has an open finding, or its file was not given.",
            ),
        ],
    )


def _link(data: CloudData, host: str) -> PageLink:
    return PageLink(text=data.short_name(host), to=data.keys[host])
