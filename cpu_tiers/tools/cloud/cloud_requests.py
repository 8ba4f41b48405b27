"""``cpu-tiers cloud requests``: the past servers of a cloud in files."""

import csv
import io
import json
import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.nova.nova_command import NovaCommand
from cpu_tiers.tools.simulation.requests import to_requests, to_rows

LOG = logging.getLogger(__name__)


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
