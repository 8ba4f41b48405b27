"""``cpu-tiers cloud show``: what of a cloud is sold and left, by host, by tier and by group."""

import logging
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

from oslo_config import cfg
from rich.console import Console

from cpu_tiers.errors import CpuTiersError, FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud.audit_files import read_audit_file
from cpu_tiers.tools.cloud.capacity import tier_rooms
from cpu_tiers.tools.cloud.cloud_metrics import cloud_metrics
from cpu_tiers.tools.cloud.cloud_projects import print_projects, project_rows, read_project_names
from cpu_tiers.tools.cloud.cloud_text import columns_of, excess_names, print_cloud, rows_of
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import HOST
from cpu_tiers.tools.frame.cloud_source import CloudSource, moment
from cpu_tiers.tools.frame.formatting import TEXT_FORMATS, ListCommand
from cpu_tiers.tools.frame.metrics import with_label, write_metrics_file
from cpu_tiers.tools.frame.notes_on_answers import tell_unknown_states
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.frame.server_request import add_volume_argument, without_root_disk
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.frame.whole_cloud import read_providers, read_snapshot_of, with_places
from cpu_tiers.tools.page.cloud_data import AuditedHost
from cpu_tiers.tools.placement.cloud_reader import read_sold_cloud
from cpu_tiers.tools.plan.read import read_cloud as hosts_of_plan
from cpu_tiers.tools.plan.requests import filter_options, migration_queries
from cpu_tiers.tools.plan.survive import losses
from cpu_tiers.tools.sold.project_sales import project_sales
from cpu_tiers.tools.sold.sold import SoldCloud, SoldPart, sold_cloud
from cpu_tiers.tools.sold.sold_sums import TierRoom
from cpu_tiers.tools.tiers.tier import Tier

LOG = logging.getLogger(__name__)

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
        for aggregate in cloud.nova().aggregates():
            name = aggregate.name if kind == AGGREGATE else aggregate.zone
            if name is not None:
                members = client.providers_in_aggregate(aggregate.uuid)
                groups[name].update(member.name for member in members)
    return {name: frozenset(hosts) for name, hosts in groups.items()}


def _groups_of(hosts: Iterable[str], groups: HostGroups, kind: str) -> HostGroups:
    """Return the hosts of each group, sorted by name; the hosts of no group come last."""
    names = frozenset(hosts)
    hosts_by_group = {name: names & groups[name] for name in sorted(groups)}
    others = names.difference(*hosts_by_group.values())
    if others:
        hosts_by_group[_OTHERS[kind]] = hosts_by_group.get(_OTHERS[kind], frozenset()) | others
    return {name: group_hosts for name, group_hosts in hosts_by_group.items() if group_hosts}


def _read(parsed_args: Namespace, cloud_source: Callable[[], CloudSource]) -> _Given:
    """Return the tiers, the audits of hosts and the cloud.

    :raises InvalidInput: with the faults of all arguments.
    """
    faults = FaultList()
    tiers = faults.read(read_tiers, parsed_args) or ()
    _check_page(parsed_args, faults)
    _check_metrics(parsed_args, faults)
    reports = [faults.read(read_audit_file, file) for file in parsed_args.audit]
    cloud = faults.read(cloud_source)
    faults.raise_if_any()
    assert cloud is not None, "a fault was raised"  # noqa: S101  # narrows the type
    return tiers, [report for report in reports if report], cloud


def _check_page(parsed_args: Namespace, faults: FaultList) -> None:
    """Refuse arguments of the page without the page."""
    if parsed_args.audit and not parsed_args.html:
        faults.add("--audit", "given without --html", "give both: the page shows the audits")
    if parsed_args.names and not parsed_args.html:
        faults.add("--names", "given without --html", "give both: the page shows the servers")
    if parsed_args.names and parsed_args.snapshot:
        faults.add("--names", "given with --snapshot, which has no names", "give only one")


def _check_metrics(parsed_args: Namespace, faults: FaultList) -> None:
    """Refuse arguments of the metrics without the metrics."""
    if parsed_args.cloud_label and parsed_args.prometheus is None:
        faults.add("--cloud-label", "given without --prometheus", "give both")
    if parsed_args.metrics_only and parsed_args.prometheus is None:
        faults.add("--metrics-only", "given without --prometheus", "give both")
    if parsed_args.survive and parsed_args.prometheus is None:
        faults.add("--survive", "given without --prometheus", "give both, or run plan survive")


class CloudShow(NovaConfCommand, ListCommand):
    """Show the sold and the free amounts of each host, and the tiers of the servers.

    The command asks Placement, and changes nothing. The text has the sums of the cloud, the
    providers of which more is allocated than the capacity, and the hosts with the least left.
    Other formats have a row for each resource class of each provider. Exit status: 0 if no
    provider is over its capacity, 3 if a provider is.
    """

    formats = TEXT_FORMATS
    formatter_default = "text"

    takes_snapshot = reads_all_providers = True

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
            "--metrics-only",
            action="store_true",
            help="print nothing but warnings, and do not ask Nova where servers are, which the"
            " metrics do not need: they take half of the time for a large cloud",
        )
        parser.add_argument(
            "--cloud-label",
            metavar="NAME",
            help="give all metrics the label cloud with this name, which keeps the files of"
            " several clouds or regions on one machine apart",
        )
        parser.add_argument(
            "--survive",
            action="store_true",
            help="add the metric of the hosts that may not fail, because a server would find no"
            " place (see plan survive); Nova's API is asked for all servers",
        )
        parser.add_argument(
            "--names",
            action="store_true",
            help="show servers on the page with their names, for which Nova's API is asked",
        )
        add_volume_argument(parser)
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
        is_shown = not parsed_args.metrics_only
        projects = _project_names(source) if kind == PROJECT and is_shown else None
        read_at = time.time()
        snapshot = self._read_cloud(source, is_whole=parsed_args.survive)
        if is_shown or parsed_args.html:
            snapshot = with_places(
                source,
                snapshot,
                must_answer=projects is not None,
                wants_names=parsed_args.names,
            )
        servers = snapshot.servers.servers if snapshot.servers else {}
        cloud = sold_cloud(snapshot, tiers, source.service_states)
        groups = _groups_of(cloud.hosts, named, kind) if is_of_hosts else {}
        is_text = parsed_args.formatter == self.formatter_default and is_shown
        wants_rooms = is_text or parsed_args.html or parsed_args.prometheus is not None
        change = without_root_disk if parsed_args.from_volume else None
        rooms = self._rooms(conf, source, tiers, cloud.parts, change) if wants_rooms else []
        if parsed_args.html:
            names = {uuid: each.name for uuid, each in servers.items() if parsed_args.names}
            _write(parsed_args.html, cloud, given, names, rooms, groups)
        if (path := parsed_args.prometheus) is not None:
            homeless = self._homeless(conf, source, snapshot) if parsed_args.survive else None
            metrics = cloud_metrics(cloud, rooms, groups, read_at, homeless)
            if parsed_args.cloud_label:
                metrics = with_label(metrics, "cloud", parsed_args.cloud_label)
            write_metrics_file(path, metrics)
        self.status = FOUND if cloud.excesses else 0
        if not is_text:
            tell_unknown_states(source.service_states)
        if self.status and not is_text:
            LOG.warning("More is allocated than the capacity: %s", excess_names(cloud.excesses))
        if not is_shown:
            parsed_args.print_text = lambda _: None
            return columns_of(None), ()
        print_text = partial(
            print_cloud, cloud=cloud, rooms=rooms, groups=groups, show_all=parsed_args.all
        )
        parsed_args.print_text = print_text
        if projects is None:
            columns = groups if is_of_hosts else None
            return columns_of(columns), rows_of(cloud, columns)
        sales = project_sales(cloud, {uuid: each.project for uuid, each in servers.items()})

        def print_with_projects(console: Console) -> None:
            print_text(console)
            print_projects(console, sales, projects, show_all=parsed_args.all)

        parsed_args.print_text = print_with_projects
        return project_rows(sales, projects)

    def _read_cloud(self, source: CloudSource, *, is_whole: bool) -> Snapshot:
        """Return the cloud.

        :param is_whole: whether to read all that a plan needs: traits, aggregates and servers.
        """
        if is_whole:
            return read_snapshot_of(source, asks_nova=not self.wants_embedded)
        return read_cloud(source)

    def _rooms(
        self,
        conf: cfg.ConfigOpts,
        cloud: CloudSource,
        tiers: Sequence[Tier],
        sold: Iterable[SoldPart],
        change: Callable[[Flavor], Flavor] | None,
    ) -> list[TierRoom]:
        if self.wants_embedded:  # has no Nova beside it
            return []
        with ProgressLine("asking for the room of each tier"):
            try:
                self.find_tiers(conf, cloud)
                return tier_rooms(cloud, conf, tiers, sold, change)
            except CpuTiersError as error:  # the rest of the answer is complete
                LOG.warning("How many more servers of each tier fit is left out: %s", error)
                return []

    def _homeless(
        self, conf: cfg.ConfigOpts, source: CloudSource, snapshot: Snapshot
    ) -> list[int] | None:
        """Return how many servers find no place, for each failure of a host that leaves any so.

        :returns: ``None`` after a warning.
        """
        try:
            self.find_tiers(conf, source)
            hosts = hosts_of_plan(
                snapshot, partial(migration_queries, conf), options=filter_options(conf)
            )
            each = [(root,) for root in hosts.names]
            with ProgressLine("losing each host") as line:
                bad = losses(hosts, each, partial(line.tell_number, "hosts"))
            return [len(loss.homeless) for loss in bad]
        except CpuTiersError as error:  # the other metrics are complete
            LOG.warning("Whether the cloud survives the loss of a host is left out: %s", error)
            return None


def read_cloud(cloud: CloudSource) -> Snapshot:
    """Return the sold amounts of a cloud: of the snapshot, or of Placement."""
    if cloud.snapshot is not None:
        return cloud.snapshot
    with ProgressLine("asking Placement") as line:
        return read_providers(cloud, line, read_sold_cloud)


def _project_names(cloud: CloudSource) -> Mapping[str, str]:
    """Return the names of projects; none for a snapshot, which has only ids.

    :raises InvalidInput: the snapshot does not say whose the servers are.
    :raises ComputeApiUnavailable: Nova refuses to say where servers are.
    """
    if cloud.snapshot is None:
        _ = cloud.compute_services  # asked before the long reading
        with ProgressLine("asking Keystone for projects"):
            return read_project_names(cloud.services())
    if cloud.snapshot.servers is None or HOST in cloud.snapshot.servers.unread:
        raise InvalidInput.of(
            "--group-by project",
            "the snapshot has no projects: it is of a version before 3",
            "ask the cloud itself, or write a new snapshot",
        )
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

    place = "The databases, read" if read_from.databases else "Placement, asked"
    source = f"{place} at {moment(datetime.now(UTC))}."
    if snapshot := read_from.snapshot:
        time = f" of {moment(snapshot.taken)}" if snapshot.taken else ""
        source = f"The snapshot {read_from.name}{time}."
    names = [tier.name for tier in tiers]
    page = cloud_page(cloud, names, reports, source, server_names, rooms, groups)
    write_output(path, page.html().encode(), private=True)  # a page has names of a cloud
