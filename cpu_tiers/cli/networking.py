"""``cpu-tiers networking show`` and ``sync``: what Neutron's agents report."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable

from cliff.lister import Lister

from cpu_tiers.cli.documents import read_json
from cpu_tiers.cli.inventory import provider_row
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.inventory.networking import build_networking_trees
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.network_agent import NetworkAgent
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.errors import Interrupted, PlacementError
from cpu_tiers.placement.networking import NetworkingChanges, sync_networking
from cpu_tiers.placement.session import connect

LOG = logging.getLogger(__name__)


class _NetworkingCommand(NovaConfCommand, Lister):
    """What both commands take, and the trees that it makes."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "agents",
            nargs="+",
            metavar="AGENT.json",
            help="openstack network agent show -f json",
        )
        parser.add_argument(
            "--device-trait",
            action="append",
            default=[],
            metavar="DEVICE=TRAIT",
            help="one more trait of a device, such as br-ex=CUSTOM_GUARANTEED_BW; "
            "may be given several times",
        )
        parser.add_argument(
            "--prohibit-vnic-type",
            action="append",
            default=[],
            metavar="TYPE",
            help="as in Neutron's vnic_type_prohibit_list; may be given several times",
        )
        return parser

    def trees(self, parsed_args: Namespace) -> tuple[ProviderTree, ...]:
        """Return the trees that the agents describe."""
        faults = FaultList()
        agents = []
        for path in parsed_args.agents:
            with faults:
                agents.append(NetworkAgent.parse(read_json(path), where=path))
        faults.raise_if_any()
        return build_networking_trees(
            agents,
            device_traits=_by_device(parsed_args.device_trait),
            prohibited_vnic_types=parsed_args.prohibit_vnic_type,
        )


class NetworkingShow(_NetworkingCommand):
    """Show the providers that Neutron's agents have under their hosts; nothing is written."""

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Build the trees, and lay them out."""
        providers = (p for tree in self.trees(parsed_args) for p in tree.providers[1:])
        columns = ("uuid", "name", "parent", "inventories", "traits")
        return columns, [(provider.uuid, *provider_row(provider)) for provider in providers]


class NetworkingSync(_NetworkingCommand):
    """Write to Placement what Neutron's agents have, and say what changed."""

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Build the trees, and write what differs."""
        trees = self.trees(parsed_args)
        with connect(self.nova_conf(), embedded=self.wants_embedded) as client:
            done = _sync(client, trees)
        for kept in (device for tree in done for device in tree.kept):
            LOG.warning("%s", kept)
        rows = [(c.provider, c.what, c.before, c.after) for tree in done for c in tree.changes]
        if not rows:
            LOG.info("Placement already has it all: nothing was changed.")
        return ("provider", "what", "before", "after"), rows


def _sync(client: PlacementClient, trees: Iterable[ProviderTree]) -> list[NetworkingChanges]:
    done: list[NetworkingChanges] = []
    for tree in trees:
        try:
            done.append(sync_networking(client, tree))
        except (PlacementError, Interrupted) as error:
            error.prepend_written([change for earlier in done for change in earlier.changes])
            raise
    return done


def _by_device(given: Iterable[str]) -> dict[str, set[str]]:
    traits: dict[str, set[str]] = {}
    for text in given:
        device, sign, trait = text.partition("=")
        if not (device and sign and trait):
            raise InvalidInput.of("--device-trait", f"got {text!r}", "give DEVICE=TRAIT")
        traits.setdefault(device, set()).add(trait)
    return traits
