"""``cpu-tiers cloud snapshot``: a cloud in a file."""

import json
import logging
from argparse import ArgumentParser, Namespace
from dataclasses import replace

from cpu_tiers.tools.cloud_model.masking import masked
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.whole_cloud import read_snapshot_of

LOG = logging.getLogger(__name__)


class CloudSnapshot(NovaConfCommand):
    """Write all providers, allocations, flavors and servers of a cloud into one file.

    The command asks Placement and Nova, and changes nothing. Only the user may read the file.
    """

    takes_snapshot = reads_all_providers = True

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
        # An embedded Placement has no Nova beside it.
        asks_nova = not parsed_args.no_flavors and not self.wants_embedded
        snapshot = read_snapshot_of(cloud, asks_nova=asks_nova)
        if parsed_args.no_flavors:
            snapshot = replace(snapshot, flavors=(), servers=None)
        if parsed_args.mask:
            snapshot = masked(snapshot)
        content = json.dumps(snapshot.to_json(), separators=(",", ":")).encode()
        write_output(parsed_args.file, content, private=True)
        LOG.info(
            "providers: %d, consumers: %d, flavors: %d, servers: %d",
            len(snapshot.providers),
            len(snapshot.consumers),
            len(snapshot.flavors),
            len(snapshot.servers.servers) if snapshot.servers else 0,
        )
