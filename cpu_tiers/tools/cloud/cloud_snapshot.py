"""``cpu-tiers cloud snapshot`` and ``cloud requests``: a cloud and its past servers in files."""

import csv
import io
import json
import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.cloud_source import CloudSource, warn_of_left_out_flavors
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.nova.nova_command import NovaCommand
from cpu_tiers.tools.placement.cloud_reader import read_whole_cloud
from cpu_tiers.tools.simulation.requests import to_requests, to_rows
from cpu_tiers.tools.simulation.snapshot import Snapshot, masked

LOG = logging.getLogger(__name__)


class CloudSnapshot(NovaConfCommand):
    """Write all providers, allocations and flavors of a cloud into one file.

    The command asks Placement and Nova, and changes nothing. Only the user may read the file.
    """

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="path of the file to write")
        parser.add_argument(
            "--mask",
            action="store_true",
            help="replace the names and the ids of hosts, aggregates, servers and flavors;"
            " resource classes, traits and the extra specs that decide about hosts are kept",
        )
        parser.add_argument(
            "--no-flavors", action="store_true", help="ask only Placement, and not Nova"
        )

    def take_action(self, parsed_args: Namespace) -> None:
        cloud = self.cloud_source(parsed_args, self.nova_conf())
        snapshot = cloud.snapshot or self._read(cloud, has_flavors=not parsed_args.no_flavors)
        if parsed_args.no_flavors:
            snapshot = replace(snapshot, flavors=())
        if parsed_args.mask:
            snapshot = masked(snapshot)
        content = json.dumps(snapshot.to_json(), separators=(",", ":")).encode()
        write_output(parsed_args.file, content, private=True)
        LOG.info(
            "providers: %d, consumers: %d, flavors: %d",
            len(snapshot.providers),
            len(snapshot.consumers),
            len(snapshot.flavors),
        )

    def _read(self, cloud: CloudSource, *, has_flavors: bool) -> Snapshot:
        """Read the cloud; an embedded Placement has no Nova beside it."""
        taken, faults = datetime.now(UTC), FaultList()
        flavors: tuple[Flavor, ...] = ()
        with ProgressLine("asking Placement") as progress:
            with cloud.placement() as client:
                tell = partial(progress.tell_number, "providers")
                snapshot = read_whole_cloud(client, tell)
            progress.tell("asking Nova for flavors")
            if has_flavors and not self.wants_embedded:
                flavors = tuple(cloud.flavors(faults))
        warn_of_left_out_flavors(faults)
        return replace(snapshot, flavors=flavors, taken=taken)


class CloudRequests(NovaCommand):
    """Write when the servers of Nova's database came and went, and their flavors.

    Both files are for `cpu-tiers simulate`. The command reads the database of each cell, and
    changes nothing. Only the user may read the files.
    """

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("requests", metavar="REQUESTS.csv", help="file to write requests to")
        parser.add_argument("flavors", metavar="FLAVORS.json", help="file to write flavors to")
        parser.add_argument(
            "--mask",
            action="store_true",
            help="replace the names of flavors; extra specs that decide about hosts are kept",
        )

    def take_action(self, parsed_args: Namespace) -> None:
        faults = FaultList()
        with self.cloud() as cloud:
            # Here, because Nova may be missing, and self.cloud() says so.
            from cpu_tiers.tools.nova.stored_flavors import past_servers

            servers = [server for cell in cloud.all() for server in past_servers(cell, faults)]
        if faults.faults:
            LOG.warning(
                "Servers left out, because of their flavors: %d, the first: %s",
                len(faults.faults),
                faults.faults[0],
            )
        arrivals, flavors = to_requests(servers, is_masked=parsed_args.mask)
        table = io.StringIO()
        csv.writer(table, lineterminator="\n").writerows(to_rows(arrivals))
        write_output(parsed_args.requests, table.getvalue().encode(), private=True)
        documents = json.dumps(list(_documents(flavors)), indent=1)
        write_output(parsed_args.flavors, documents.encode(), private=True)
        LOG.info("requests: %d, flavors: %d", len(arrivals), len(flavors))


def _documents(flavors: Iterable[Flavor]) -> Iterable[dict[str, object]]:
    """Yield flavors as ``openstack flavor list --long -f json`` has them."""
    for flavor in flavors:
        yield {
            "Name": flavor.name,
            "VCPUs": flavor.vcpus,
            "RAM": flavor.memory_mb,
            "Disk": flavor.root_gb,
            "Ephemeral": flavor.ephemeral_gb,
            "Swap": flavor.swap_mb,
            "Properties": dict(flavor.extra_specs),
        }
