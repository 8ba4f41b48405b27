"""``cpu-tiers cloud show``: what of a cloud is sold and left, by host and by tier."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from oslo_config import cfg

from cpu_tiers.errors import CpuTiersError, FaultList, InvalidInput, printable
from cpu_tiers.guest.tier import Tier
from cpu_tiers.tools.cloud.capacity import tier_rooms
from cpu_tiers.tools.compute_api.aggregates import read_aggregates
from cpu_tiers.tools.compute_api.answers import ComputeApiUnavailable
from cpu_tiers.tools.compute_api.servers import read_server_names
from cpu_tiers.tools.frame.cloud_source import CloudSource, moment
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand, add_snapshot_argument
from cpu_tiers.tools.frame.progress import ProgressLine
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.terminal import MOST_LINES
from cpu_tiers.tools.frame.tier_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.host.audit_files import read_audit_file
from cpu_tiers.tools.page.cloud_data import AuditedHost
from cpu_tiers.tools.placement.whole_cloud import read_sold_cloud
from cpu_tiers.tools.simulation.left import TierRoom
from cpu_tiers.tools.simulation.snapshot import Snapshot
from cpu_tiers.tools.simulation.sold import SoldAmount, SoldCloud, sold_cloud

LOG = logging.getLogger(__name__)

ZONE = "zone"
AGGREGATE = "aggregate"

_OTHERS = {ZONE: "default zone", AGGREGATE: "no aggregate"}

HostGroups = Mapping[str, frozenset[str]]
"""The names of the hosts of each group."""


def add_group_argument(parser: ArgumentParser) -> None:
    """Add the argument."""
    parser.add_argument(
        "--group-by",
        choices=(ZONE, AGGREGATE),
        help="also show what is left of each availability zone or host aggregate, for which Nova's"
        " API is asked; a snapshot has only the uuids of aggregates",
    )


def read_host_groups(cloud: CloudSource, kind: str) -> HostGroups:
    """Return the providers of each group.

    It takes a request to Nova, and a request to Placement for each aggregate.

    :raises InvalidInput: zones are wanted of a snapshot, which has none.
    :raises ComputeApiUnavailable: Nova does not answer, or the user is no administrator.
    :raises PlacementError: Placement does not answer, or refuses.
    """
    if cloud.snapshot is not None:
        return _of_snapshot(cloud.snapshot, kind)
    groups: dict[str, set[str]] = {}
    with ProgressLine("asking for aggregates"), cloud.placement() as client:
        for aggregate in read_aggregates(cloud.services()):
            name = aggregate.name if kind == AGGREGATE else aggregate.zone
            if name is not None:
                providers = client.providers_in_aggregate(aggregate.uuid)
                groups.setdefault(name, set()).update(provider.name for provider in providers)
    return {name: frozenset(hosts) for name, hosts in groups.items()}


def _of_snapshot(snapshot: Snapshot, kind: str) -> HostGroups:
    if kind == ZONE:
        raise InvalidInput.of(
            "--group-by zone",
            "a snapshot has the uuids of aggregates, and no zones",
            "give --group-by aggregate, or ask the cloud itself",
        )
    groups: dict[str, set[str]] = {}
    for provider in snapshot.providers:
        for aggregate in provider.aggregates:
            groups.setdefault(aggregate, set()).add(provider.name)
    return {name: frozenset(hosts) for name, hosts in groups.items()}


def groups_of(hosts: Iterable[str], groups: HostGroups, kind: str) -> HostGroups:
    """Return the hosts of each group, sorted by name; the hosts of no group come last."""
    names = frozenset(hosts)
    of_hosts = {name: names & groups[name] for name in sorted(groups)}
    others = names.difference(*of_hosts.values())
    if others:
        of_hosts[_OTHERS[kind]] = of_hosts.get(_OTHERS[kind], frozenset()) | others
    return {name: of_group for name, of_group in of_hosts.items() if of_group}


COLUMNS = ("host", "disabled", "provider", "class", "capacity", "used", "tiers")

_NO_PAGE = "given without --html"

OVER = 3
"""The exit status if more is allocated of a resource class of a provider than the capacity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What the arguments say.

    :param source: where and when the cloud was read.
    """

    tiers: Sequence[Tier]
    reports: Sequence[AuditedHost]
    cloud: CloudSource
    source: str

    @classmethod
    def read(cls, parsed_args: Namespace, cloud_source: Callable[[], CloudSource]) -> "_Given":
        """Read the files.

        :raises InvalidInput: with the faults of all arguments.
        """
        faults, path = FaultList(), parsed_args.snapshot
        tiers = faults.read(read_tiers, parsed_args) or ()
        if parsed_args.audit and not parsed_args.html:
            faults.add("--audit", _NO_PAGE, "give both: the page shows the audits")
        if parsed_args.names and not parsed_args.html:
            faults.add("--names", _NO_PAGE, "give both: the page shows the servers")
        if parsed_args.names and path:
            faults.add("--names", "given with --snapshot, which has no names", "give only one")
        reports = [faults.read(read_audit_file, file) for file in parsed_args.audit]
        cloud = faults.read(cloud_source)
        faults.raise_if_any()
        assert cloud is not None, "a fault was raised"  # noqa: S101  # narrows the type
        source = f"Placement, asked at {moment(datetime.now(UTC))}."
        if snapshot := cloud.snapshot:
            time = f" of {moment(snapshot.taken)}" if snapshot.taken else ""
            source = f"The snapshot {path}{time}."
        return cls(
            tiers=tiers,
            reports=[report for report in reports if report],
            cloud=cloud,
            source=source,
        )


class CloudShow(NovaConfCommand, ListCommand):
    """Show what of each host is sold, to which tiers, and what is left.

    The command asks Placement, and changes nothing. The text has the sums of the cloud, the
    providers of which more is allocated than the capacity, and the hosts with the least left.
    Other formats have a row for each resource class of each provider. Exit status: 0 if no
    provider is over its capacity, 3 if a provider is.
    """

    formats = "cloud"
    default_format = "text"

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the source, the tiers and the page."""
        parser: ArgumentParser = super().get_parser(prog_name)
        add_snapshot_argument(parser)
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
            "--names",
            action="store_true",
            help="show servers on the page with their names, for which Nova's API is asked",
        )
        add_tier_argument(parser)
        add_group_argument(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Read the cloud, write the page, and list the amounts."""
        conf = self.nova_conf()
        given = _Given.read(parsed_args, partial(self.cloud_source, parsed_args, conf))
        kind = parsed_args.group_by
        named = read_host_groups(given.cloud, kind) if kind else {}  # it may be refused
        cloud = sold_cloud(given.cloud.snapshot or _read_cloud(given.cloud), given.tiers)
        groups = groups_of(cloud.hosts, named, kind) if kind else {}
        is_text = parsed_args.formatter == self.formatter_default
        rooms = self._rooms(conf, given) if is_text or parsed_args.html else []
        if parsed_args.html:
            names = _server_names(given.cloud) if parsed_args.names else {}
            _write(parsed_args.html, cloud, given, names, rooms, groups)
        self.status = OVER if cloud.excesses else 0
        if self.status and not is_text:
            LOG.warning("More is allocated than the capacity: %s", _names(cloud.excesses))
        # For the text, which has more than the rows.
        parsed_args.cloud, parsed_args.rooms, parsed_args.groups = cloud, rooms, groups
        return _rows(cloud, groups if kind else None)

    def _rooms(self, conf: cfg.ConfigOpts, given: _Given) -> list[TierRoom]:
        """Return how many more servers of each tier fit; nothing if there are no flavors."""
        if self.wants_embedded:  # has no Nova beside it
            return []
        with ProgressLine("asking for the room of each tier"):
            try:
                self.find_tiers(conf, given.cloud)
                return tier_rooms(given.cloud, conf, given.tiers)
            except CpuTiersError as error:  # the rest of the answer is complete
                LOG.warning("How many more servers of each tier fit is left out: %s", error)
                return []


def _read_cloud(cloud: CloudSource) -> Snapshot:
    with ProgressLine("asking Placement") as line, cloud.placement() as client:
        providers, consumers = read_sold_cloud(client, partial(line.tell_number, "providers"))
    return Snapshot(providers=providers, consumers=consumers)


def _server_names(cloud: CloudSource) -> Mapping[str, str]:
    """Return the names of servers; none if Nova's API does not answer."""
    with ProgressLine("asking Nova for the names of servers"):
        try:
            return read_server_names(cloud.services())
        except ComputeApiUnavailable as error:
            LOG.warning("The page shows the ids of servers instead of the names: %s", error)
            return {}


def _rows(
    cloud: SoldCloud, groups: HostGroups | None
) -> tuple[tuple[str, ...], list[tuple[object, ...]]]:
    """Return the columns and the rows; a column has the groups of the host if there are any."""
    rows: list[tuple[object, ...]] = []
    for amount in cloud.amounts:
        tiers = {name: sale._asdict() for name, sale in amount.tiers.items()}
        of_host = [name for name, hosts in (groups or {}).items() if amount.host in hosts]
        rows.append(
            (
                amount.host,
                amount.host in cloud.disabled,
                amount.provider,
                amount.resource_class,
                amount.capacity,
                amount.used,
                FormattedValue(tiers, _tier_text),
                *(() if groups is None else (FormattedValue(of_host, ", ".join),)),
            )
        )
    return (*COLUMNS, *(() if groups is None else ("groups",))), rows


def _names(excesses: Sequence[SoldAmount]) -> str:
    """Return the amounts and the names of the first providers, and how many more there are."""
    texts = [
        printable(
            f"{amount.used} of {amount.capacity} {amount.resource_class} of {amount.provider}"
        )
        for amount in excesses
    ]
    more = len(texts) - MOST_LINES
    return ", ".join([*texts[:MOST_LINES], *([f"and {more} more"] if more > 0 else [])])


def _tier_text(tiers: Mapping[str, Mapping[str, int]]) -> str:
    """Return the amounts by tier, in a line."""
    return ", ".join(f"{printable(name)}: {sale['used']}" for name, sale in tiers.items())


def _write(
    path: str,
    cloud: SoldCloud,
    given: _Given,
    server_names: Mapping[str, str],
    rooms: Sequence[TierRoom],
    groups: HostGroups,
) -> None:
    faults = FaultList()
    for host in sorted(
        {report.host for report in given.reports} - {a.host for a in cloud.amounts}
    ):
        allowed = "name the file after a host of the cloud, such as compute-1.json"
        faults.add("--audit", f"the cloud has no host {host}", allowed)
    faults.raise_if_any()
    from cpu_tiers.tools.page.cloud import cloud_page

    tiers = [tier.name for tier in given.tiers]
    page = cloud_page(cloud, tiers, given.reports, given.source, server_names, rooms, groups)
    write_output(path, page.html().encode(), private=True)  # a page has names of a cloud
