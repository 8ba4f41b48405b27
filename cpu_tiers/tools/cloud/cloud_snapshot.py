"""``cpu-tiers cloud snapshot``: a cloud in a file."""

import json
import logging
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.cloud_source import CloudSource, warn_of_left_out_flavors
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.placement.cloud_reader import read_whole_cloud
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
