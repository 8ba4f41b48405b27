"""``cpu-tiers flavor check``: what is wrong with flavors."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from cliff.lister import Lister

from cpu_tiers import extensions
from cpu_tiers.cli.documents import read_flavor
from cpu_tiers.errors import FaultList
from cpu_tiers.translators import ServerRequest, translate

LOG = logging.getLogger(__name__)


class FlavorCheck(Lister):
    """List every fault of each flavor; exit status 1 if there is any."""

    faulty = False

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take any number of flavors."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "flavor", nargs="+", metavar="FLAVOR.json", help="openstack flavor show -f json"
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Check one file after the other."""
        translators = extensions.load(extensions.TRANSLATORS)
        rows = []
        for path in parsed_args.flavor:
            faults = FaultList()
            with faults:
                translate(ServerRequest(flavor=read_flavor(path)), translators)
            rows += [(path, *fault) for fault in faults.faults]
        self.faulty = bool(rows)
        LOG.info("flavors: %d, faults: %d", len(parsed_args.flavor), len(rows))
        return ("file", "where", "given", "allowed"), rows

    def run(self, parsed_args: Namespace) -> int:
        """Tell a script, too."""
        status: int = super().run(parsed_args)
        return status or int(self.faulty)
