"""``cpu-tiers flavor pair``: the extra specs of a tier for a Nova without cpu-tiers."""

import logging
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TextIO

from cpu_tiers.errors import FaultList, printable_lines
from cpu_tiers.extra_specs.pair import pair_of
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.documents import read_flavors
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand, TextList
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_flavors_arguments
from cpu_tiers.tools.frame.terminal import ProgressLine

LOG = logging.getLogger(__name__)


class FlavorPair(NovaConfCommand, ListCommand):
    """List the extra specs by which stock Nova gives flavors the weight and shares of their tiers.

    The output is the commands of the openstack client that set the extra specs; nothing is
    changed. Flavors without a tier, and flavors that have their pair, are left as they are.
    """

    all_help = "all flavors of the cloud: ask Nova with the credentials in [placement]"
    formatter_namespace = "cpu_tiers.formatter.pair"
    formatter_default = "text"

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_flavors_arguments(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        if not (parsed_args.flavor_file or parsed_args.flavor or parsed_args.all):
            self._parser.error("name a file with flavors, or give --flavor or --all")
        cloud = self.cloud_source(parsed_args, self.nova_conf())
        faults = FaultList()
        rows = []
        with ProgressLine("reading flavors"):
            flavors = list(_flavors(parsed_args, cloud, faults))
        for flavor in flavors:
            with faults:
                pair = pair_of(flavor)
                if pair is None:
                    LOG.info("flavor %s has no tier, and is left as it is", flavor.name)
                elif pair.is_complete_in(flavor):
                    LOG.info("flavor %s has its pair already", flavor.name)
                else:
                    properties = FormattedValue(pair.properties, _properties)
                    remove = FormattedValue(list(pair.remove), "\n".join)
                    rows.append((flavor.name, properties, remove))
        # Nobody wants half of the commands: whoever pipes them to a shell gets all or none.
        faults.raise_if_any()
        return ("flavor", "properties", "remove"), rows


class PairCommands(TextList):
    """Prints each pair as commands of the openstack client."""

    def print_rows(
        self, rows: Sequence[Mapping[str, Any]], stdout: TextIO, parsed_args: Namespace
    ) -> None:
        """Print the commands that set extra specs, and the commands that remove extra specs."""
        for row in rows:
            pairs = [f"{key}={value}" for key, value in row["properties"].items()]
            for verb, words in (("set", pairs), ("unset", row["remove"])):
                if words:
                    stdout.write(_command(verb, row["flavor"], words))


def _command(verb: str, flavor: str, properties: Iterable[str]) -> str:
    """Return a line for a shell; a name that begins with ``-`` is no option there."""
    options = [word for each in properties for word in ("--property", each)]
    arguments = [*options, "--", flavor] if flavor.startswith("-") else [flavor, *options]
    return printable_lines(shlex.join(["openstack", "flavor", verb, *arguments])) + "\n"


def _flavors(parsed_args: Namespace, cloud: CloudSource, faults: FaultList) -> Iterable[Flavor]:
    for path in parsed_args.flavor_file:
        yield from read_flavors(path, faults)
    if parsed_args.flavor:
        yield from cloud.flavors_named(parsed_args.flavor)
    if parsed_args.all:
        yield from cloud.flavors(faults)


def _properties(properties: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={value}" for key, value in properties.items())
