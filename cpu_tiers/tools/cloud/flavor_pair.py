"""``cpu-tiers flavor pair``: the extra specs by which stock Nova has tiers."""

import logging
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from cpu_tiers.errors import FaultList, printable_lines
from cpu_tiers.tools.frame.formatting import (
    LIST_FORMATS,
    FormattedValue,
    ListCommand,
    TextFormatter,
)
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_flavors_arguments, given_flavors
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.tiers.pair import Pair, pair_of

if TYPE_CHECKING:
    from rich.console import Console

LOG = logging.getLogger(__name__)


class FlavorPair(NovaConfCommand, ListCommand):
    """List the extra specs by which stock Nova gives flavors the weight and shares of their tiers.

    The output is the commands of the openstack client that set the extra specs; nothing is
    changed. Flavors without a tier, and flavors that have their pair, are left as they are.
    """

    all_help = "all flavors of the cloud: ask Nova with the credentials in [placement]"
    formats = LIST_FORMATS | {"text": TextFormatter}
    formatter_default = "text"

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_flavors_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        if not (parsed_args.flavor_file or parsed_args.flavor or parsed_args.all):
            self._parser.error("name a file with flavors, or give --flavor or --all")
        cloud = self.cloud_source(parsed_args, self.nova_conf())
        faults = FaultList()
        pairs = []
        with ProgressLine("reading flavors"):
            flavors = list(given_flavors(parsed_args, cloud, faults))
            flavors += cloud.flavors(faults) if parsed_args.all else ()
        for flavor in flavors:
            with faults:
                pair = pair_of(flavor)
                if pair is None:
                    LOG.info("flavor %s has no tier, and is left as it is", flavor.name)
                elif pair.is_complete_in(flavor):
                    LOG.info("flavor %s has its pair already", flavor.name)
                else:
                    pairs.append((flavor.name, pair))
        # Nobody wants half of the commands: whoever pipes them to a shell gets all or none.
        faults.raise_if_any()
        parsed_args.print_text = partial(_print, pairs=pairs)
        return ("flavor", "properties", "remove"), [
            (
                name,
                FormattedValue(pair.properties, _properties),
                FormattedValue(list(pair.remove), "\n".join),
            )
            for name, pair in pairs
        ]


def _print(console: "Console", pairs: Iterable[tuple[str, Pair]]) -> None:
    for flavor, pair in pairs:
        properties = [f"{key}={value}" for key, value in pair.properties.items()]
        for verb, words in (("set", properties), ("unset", pair.remove)):
            if words:
                console.file.write(_command(verb, flavor, words))


def _command(verb: str, flavor: str, properties: Iterable[str]) -> str:
    """Return a line for a shell; a name that begins with ``-`` is no option there."""
    options = [word for each in properties for word in ("--property", each)]
    arguments = [*options, "--", flavor] if flavor.startswith("-") else [flavor, *options]
    return printable_lines(shlex.join(["openstack", "flavor", verb, *arguments])) + "\n"


def _properties(properties: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={value}" for key, value in properties.items())
