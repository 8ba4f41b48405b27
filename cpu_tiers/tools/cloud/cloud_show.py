"""``cpu-tiers cloud show``: what of a cloud is sold and left, by host, by tier and by group.

The page also shows what ``host audit`` and ``host watch`` say of hosts: the list of ``host audit
-f json``, or metrics. None of these files names its host, so the name of the file does.
"""

import logging
import math
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from oslo_config import cfg
from rich.console import Console

from cpu_tiers.errors import CpuTiersError, FaultList, InvalidInput
from cpu_tiers.tools.cloud.capacity import tier_rooms
from cpu_tiers.tools.cloud.cloud_metrics import CloudMetrics
from cpu_tiers.tools.cloud.cloud_projects import print_projects, project_rows, read_owners
from cpu_tiers.tools.cloud.cloud_text import excess_names, print_cloud, rows_of
from cpu_tiers.tools.compute_api import ComputeApiUnavailable, read_aggregates, read_server_names
from cpu_tiers.tools.frame.cloud_source import CloudSource, moment
from cpu_tiers.tools.frame.documents import read_bytes, read_json
from cpu_tiers.tools.frame.formatting import ListCommand
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.frame.server_request import tell_unknown_states
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.page.cloud_data import AuditedHost, AuditFinding, GuestFigures
from cpu_tiers.tools.placement.cloud_reader import read_sold_cloud
from cpu_tiers.tools.simulation.project_sales import project_sales
from cpu_tiers.tools.simulation.snapshot import Snapshot
from cpu_tiers.tools.simulation.sold import SoldCloud, SoldPart, TierRoom, sold_cloud
from cpu_tiers.tools.tiers.tier import Tier

LOG = logging.getLogger(__name__)

_GUEST_METRICS = {
    "cpu_tiers_guest_floor_cpus": "floor",
    "cpu_tiers_watch_floor_cpus": "floor",
    "cpu_tiers_guest_due_cpus": "due",
    "cpu_tiers_watch_due_seconds_total": "due",
    "cpu_tiers_guest_delivered_cpus": "ran",
    "cpu_tiers_watch_ran_seconds_total": "ran",
}
"""The metrics of a guest that the page shows. What was due and what ran have the same unit."""


def read_audit_file(path: str) -> AuditedHost:
    """Return what a file says of a host.

    :raises InvalidInput: with every fault of the file.
    """
    name = Path(path).name
    for suffix, read in ((".json", _read_findings), (".prom", _read_metrics)):
        if name.endswith(suffix) and name != suffix:
            return read(name.removesuffix(suffix), path)
    allowed = "name the file after its host, such as compute-1.json or compute-1.prom"
    raise InvalidInput.of("--audit", f"got {path!r}", allowed)


def _read_findings(host: str, path: str) -> AuditedHost:
    rows = read_json(path, "give the output of cpu-tiers host audit -f json")
    if not isinstance(rows, list):
        given = f"a JSON {type(rows).__name__}"
        raise InvalidInput.of(path, given, "give the output of cpu-tiers host audit -f json")
    faults = FaultList()
    findings = []
    for number, row in enumerate(rows):
        body = row if isinstance(row, Mapping) else {}
        texts = [text for key in AuditFinding._fields if isinstance(text := body.get(key), str)]
        if len(texts) < len(AuditFinding._fields):
            allowed = f"give a finding with the texts {', '.join(AuditFinding._fields)}"
            faults.add(f"{path}, finding {number}", f"got {row!r}", allowed)
        elif body.get("fixed") is not True:
            findings.append(AuditFinding(*texts))
    faults.raise_if_any()
    return AuditedHost(host=host, findings=tuple(findings))


def _read_metrics(host: str, path: str) -> AuditedHost:
    from prometheus_client.parser import text_string_to_metric_families

    try:
        families = text_string_to_metric_families(read_bytes(path).decode())
        guests = tuple(_guests(families))
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        allowed = "give metrics of cpu-tiers host audit --prometheus or host watch"
        raise InvalidInput.of(path, f"no metrics ({error})", allowed) from error
    return AuditedHost(host=host, guests=guests)


def _guests(families: Iterable[Any]) -> Iterable[GuestFigures]:
    values: dict[tuple[str, str, str], dict[str, float]] = {}
    for family in families:
        for sample in family.samples:
            key = _GUEST_METRICS.get(sample.name)
            if key and math.isfinite(sample.value):
                labels = sample.labels
                guest = (labels.get("uuid", ""), labels.get("guest", ""), labels.get("tier", ""))
                values.setdefault(guest, {})[key] = sample.value
    for (uuid, name, tier), of_guest in sorted(values.items()):
        yield GuestFigures(uuid=uuid, name=name, tier=tier, **of_guest)


ZONE = "zone"
AGGREGATE = "aggregate"
PROJECT = "project"

_OTHERS = {ZONE: "default zone", AGGREGATE: "no aggregate"}

HostGroups = Mapping[str, frozenset[str]]
"""The names of the hosts of each group."""

_Given = tuple[Sequence[Tier], Sequence[AuditedHost], CloudSource]
"""The tiers, the audits of hosts and the cloud of the arguments."""


def _read_host_groups(cloud: CloudSource, kind: str) -> HostGroups:
    """Return the providers of each group, after a request to Placement for each aggregate."""
    groups = defaultdict[str, set[str]](set)
    if cloud.snapshot is not None:
        if kind == ZONE:
            raise InvalidInput.of(
                "--group-by zone",
                "a snapshot has the uuids of aggregates, and no zones",
                "give --group-by aggregate, or ask the cloud itself",
            )
        for provider in cloud.snapshot.providers:
            for uuid in provider.aggregates:
                groups[uuid].add(provider.name)
        return {name: frozenset(hosts) for name, hosts in groups.items()}
    with ProgressLine("asking for aggregates"), cloud.placement() as client:
        for aggregate in read_aggregates(cloud.services()):
            name = aggregate.name if kind == AGGREGATE else aggregate.zone
            if name is not None:
                members = client.providers_in_aggregate(aggregate.uuid)
                groups[name].update(member.name for member in members)
    return {name: frozenset(hosts) for name, hosts in groups.items()}


def _groups_of(hosts: Iterable[str], groups: HostGroups, kind: str) -> HostGroups:
    """Return the hosts of each group, sorted by name; the hosts of no group come last."""
    names = frozenset(hosts)
    of_hosts = {name: names & groups[name] for name in sorted(groups)}
    others = names.difference(*of_hosts.values())
    if others:
        of_hosts[_OTHERS[kind]] = of_hosts.get(_OTHERS[kind], frozenset()) | others
    return {name: of_group for name, of_group in of_hosts.items() if of_group}


def _read(parsed_args: Namespace, cloud_source: Callable[[], CloudSource]) -> _Given:
    """Return the tiers, the audits of hosts and the cloud.

    :raises InvalidInput: with the faults of all arguments.
    """
    faults = FaultList()
    tiers = faults.read(read_tiers, parsed_args) or ()
    if parsed_args.audit and not parsed_args.html:
        faults.add("--audit", "given without --html", "give both: the page shows the audits")
    if parsed_args.names and not parsed_args.html:
        faults.add("--names", "given without --html", "give both: the page shows the servers")
    if parsed_args.names and parsed_args.snapshot:
        faults.add("--names", "given with --snapshot, which has no names", "give only one")
    reports = [faults.read(read_audit_file, file) for file in parsed_args.audit]
    cloud = faults.read(cloud_source)
    faults.raise_if_any()
    assert cloud is not None, "a fault was raised"  # noqa: S101  # narrows the type
    return tiers, [report for report in reports if report], cloud


class CloudShow(NovaConfCommand, ListCommand):
    """Show the sold and the free amounts of each host, and the tiers of the servers.

    The command asks Placement, and changes nothing. The text has the sums of the cloud, the
    providers of which more is allocated than the capacity, and the hosts with the least left.
    Other formats have a row for each resource class of each provider. Exit status: 0 if no
    provider is over its capacity, 3 if a provider is.
    """

    formatter_namespace = "cpu_tiers.formatter.text"
    formatter_default = "text"

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--html",
            metavar="FILE",
            help="write a page with charts to this file, for a browser; it needs no network",
        )
        parser.add_argument(
            "--audit",
            action="append",
            default=[],
            metavar="FILE",
            help="add to the page what `host audit -f json`, `host audit --prometheus` or `host"
            " watch` say of a host; the name of the file is the name of the host with .json or"
            " .prom; may be repeated",
        )
        parser.add_argument(
            "--prometheus",
            metavar="FILE.prom",
            help="write metrics to this file, for the textfile collector of node_exporter",
        )
        parser.add_argument(
            "--names",
            action="store_true",
            help="show servers on the page with their names, for which Nova's API is asked",
        )
        add_tier_argument(parser)
        parser.add_argument(
            "--group-by",
            choices=(ZONE, AGGREGATE, PROJECT),
            help="also show what is left of each availability zone or host aggregate, or what is"
            " sold to each project, for which Nova's API is asked; a snapshot has only the uuids"
            " of aggregates; with project, other formats have a row for each project and tier",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        given = _read(parsed_args, partial(self.cloud_source, parsed_args, conf))
        tiers, _, source = given
        kind = parsed_args.group_by
        is_of_hosts = kind in (ZONE, AGGREGATE)
        named = _read_host_groups(source, kind) if is_of_hosts else {}  # it may be refused
        owners = read_owners(source) if kind == PROJECT else None
        cloud = sold_cloud(read_cloud(source), tiers, source.service_states)
        groups = _groups_of(cloud.hosts, named, kind) if is_of_hosts else {}
        is_text = parsed_args.formatter == self.formatter_default
        wants_rooms = is_text or parsed_args.html or parsed_args.prometheus
        rooms = self._rooms(conf, source, tiers, cloud.parts) if wants_rooms else []
        if parsed_args.html:
            names = _server_names(source) if parsed_args.names else {}
            _write(parsed_args.html, cloud, given, names, rooms, groups)
        if path := parsed_args.prometheus:
            write_output(path, CloudMetrics(cloud, rooms, groups, time.time()).text())
        self.status = FOUND if cloud.excesses else 0
        if not is_text:
            tell_unknown_states(source.service_states)
        if self.status and not is_text:
            LOG.warning("More is allocated than the capacity: %s", excess_names(cloud.excesses))
        print_text = partial(
            print_cloud, cloud=cloud, rooms=rooms, groups=groups, show_all=parsed_args.all
        )
        parsed_args.print_text = print_text
        if owners is None:
            return rows_of(cloud, groups if is_of_hosts else None)
        sales = project_sales(cloud, owners.projects)

        def print_with_projects(console: Console) -> None:
            print_text(console)
            print_projects(console, sales, owners.names, show_all=parsed_args.all)

        parsed_args.print_text = print_with_projects
        return project_rows(sales, owners.names)

    def _rooms(
        self,
        conf: cfg.ConfigOpts,
        cloud: CloudSource,
        tiers: Sequence[Tier],
        sold: Iterable[SoldPart],
    ) -> list[TierRoom]:
        if self.wants_embedded:  # has no Nova beside it
            return []
        with ProgressLine("asking for the room of each tier"):
            try:
                self.find_tiers(conf, cloud)
                return tier_rooms(cloud, conf, tiers, sold)
            except CpuTiersError as error:  # the rest of the answer is complete
                LOG.warning("How many more servers of each tier fit is left out: %s", error)
                return []


def read_cloud(cloud: CloudSource) -> Snapshot:
    """Return what is sold of a cloud: the snapshot, or what Placement has."""
    if cloud.snapshot is not None:
        return cloud.snapshot
    with ProgressLine("asking Placement") as line, cloud.placement() as client:
        return read_sold_cloud(client, partial(line.tell_number, "providers"))


def _server_names(cloud: CloudSource) -> Mapping[str, str]:
    """Return the names of servers; none if Nova's API does not answer."""
    with ProgressLine("asking Nova for the names of servers"):
        try:
            return read_server_names(cloud.services())
        except ComputeApiUnavailable as error:
            LOG.warning("The page shows the ids of servers instead of the names: %s", error)
            return {}


def _write(
    path: str,
    cloud: SoldCloud,
    given: _Given,
    server_names: Mapping[str, str],
    rooms: Sequence[TierRoom],
    groups: HostGroups,
) -> None:
    tiers, reports, read_from = given
    faults = FaultList()
    for host in sorted({report.host for report in reports} - {a.host for a in cloud.amounts}):
        allowed = "name the file after a host of the cloud, such as compute-1.json"
        faults.add("--audit", f"the cloud has no host {host}", allowed)
    faults.raise_if_any()
    from cpu_tiers.tools.page.cloud import cloud_page

    source = f"Placement, asked at {moment(datetime.now(UTC))}."
    if snapshot := read_from.snapshot:
        time = f" of {moment(snapshot.taken)}" if snapshot.taken else ""
        source = f"The snapshot {read_from.name}{time}."
    names = [tier.name for tier in tiers]
    page = cloud_page(cloud, names, reports, source, server_names, rooms, groups)
    write_output(path, page.html().encode(), private=True)  # a page has names of a cloud
