"""``cpu-tiers networking show`` and ``networking sync``: the providers of Neutron's agents."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence

from oslo_config import cfg

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.placement.errors import Interrupted, PlacementError
from cpu_tiers.tools.compute_api import read_agents
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.frame.formatting import ListCommand
from cpu_tiers.tools.frame.nova_conf_command import WRITES, NovaConfCommand
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.http.services import Services
from cpu_tiers.tools.networking import network_agent
from cpu_tiers.tools.networking.agent_tree import TUNNELLED_DEVICE, build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.writers.inventory import list_changes, provider_row, warn_of_excesses
from cpu_tiers.tools.writers.networking_sync import NetworkingChanges, sync_networking

LOG = logging.getLogger(__name__)


class _NetworkingCommand(NovaConfCommand, ListCommand):
    """The arguments of both commands, and the described provider trees."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "agents",
            nargs="*",
            metavar="AGENT.json",
            help="output of `openstack network agent show -f json`; for OVN the output of "
            "`ovn-sbctl -f json list Chassis`, with all chassis",
        )
        parser.add_argument(
            "--host",
            action="append",
            default=[],
            metavar="HOST",
            help="the agents of this host, which Neutron is asked for; may be repeated",
        )
        parser.add_argument(
            "--device-trait",
            action="append",
            default=[],
            metavar="DEVICE=TRAIT",
            help="an additional trait of a device, such as br-ex=CUSTOM_GUARANTEED_BW; "
            "may be repeated",
        )
        parser.add_argument(
            "--prohibit-vnic-type",
            action="append",
            default=[],
            metavar="TYPE",
            help="a VNIC type as in Neutron's vnic_type_prohibit_list; may be repeated",
        )
        parser.add_argument(
            "--tunnelled-device",
            default=TUNNELLED_DEVICE,
            metavar="NAME",
            help="Neutron's [ml2] tunnelled_network_rp_name, the device of tunnelled networks"
            f" (default: {TUNNELLED_DEVICE})",
        )

    def trees(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> tuple[ProviderTree, ...]:
        """Return the provider trees of the agents.

        :raises InvalidInput: with the faults of all files and hosts.
        :raises ComputeApiUnavailable: Neutron does not answer.
        """
        if not parsed_args.agents and not parsed_args.host:
            self._parser.error("name a file with an agent, or give --host")
        faults = FaultList()
        agents: list[NetworkAgent] = []
        for path in parsed_args.agents:
            with faults:
                agents += _read_agents(path)
        for host in dict.fromkeys(parsed_args.host):
            with faults:
                agents += find_agents(self.services(conf), host)
        faults.raise_if_any()
        return build_networking_trees(
            agents,
            device_traits=_by_device(parsed_args.device_trait),
            prohibited_vnic_types=parsed_args.prohibit_vnic_type,
            tunnelled_device=parsed_args.tunnelled_device,
        )


class NetworkingShow(_NetworkingCommand):
    """Show the providers that Neutron's agents have under their hosts, without writing."""

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        trees = self.trees(parsed_args, self.nova_conf())
        providers = (p for tree in trees for p in tree.providers[1:])
        columns = ("uuid", "name", "parent", "inventories", "traits")
        return columns, [(provider.uuid, *provider_row(provider)) for provider in providers]


class NetworkingSync(_NetworkingCommand):
    """Write the providers of Neutron's agents to Placement, and list the changes."""

    snapshot_refusal = WRITES

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        trees = self.trees(parsed_args, conf)
        with ProgressLine("asking Placement") as progress, self.placement(conf) as client:
            results = _sync(client, trees, progress)
            changes = [change for result in results for change in result.changes]
            warn_of_excesses(client, changes)
        for kept in (device for result in results for device in result.kept):
            LOG.warning("%s", kept)
        return list_changes(changes)


def _sync(
    client: PlacementClient, trees: Sequence[ProviderTree], progress: ProgressLine
) -> list[NetworkingChanges]:
    """Write the trees in their order; an error also lists the changes of the earlier trees."""
    results: list[NetworkingChanges] = []
    for number, tree in enumerate(trees):
        progress.tell_number("hosts", number, len(trees))
        try:
            results.append(sync_networking(client, tree))
        except (PlacementError, Interrupted) as error:
            error.prepend_written([change for result in results for change in result.changes])
            raise
    return results


def _read_agents(path: str) -> tuple[NetworkAgent, ...]:
    document = read_json(path)
    if network_agent.is_chassis_table(document):
        return network_agent.read_chassis(document, where=path)
    if isinstance(document, list):
        raise InvalidInput.of(
            path,
            "a list of agents",
            "give the output of openstack network agent show -f json for each agent, or --host",
        )
    return (NetworkAgent.parse(document, where=path),)


def find_agents(services: Services, host: str) -> tuple[NetworkAgent, ...]:
    """Return the agents of a host that report bandwidths or packet rates to Neutron.

    :raises InvalidInput: the host has no such agent, or its agent is a controller of OVN, which
        reports to OVN; with every fault of an agent.
    :raises ComputeApiUnavailable: Neutron does not answer.
    """
    agents = read_agents(services, host)
    reporting = [agent for agent in agents if network_agent.reports_resources(agent)]
    if not reporting:
        raise InvalidInput.of(
            f"--host {host}",
            f"none of its {len(agents)} agents in Neutron reports bandwidths or packet rates",
            "openstack network agent list shows the agents; set resource_provider_bandwidths",
        )
    return tuple(
        NetworkAgent.parse(agent, where=f"{agent.get('agent_type')} of host {host}")
        for agent in reporting
    )


def _by_device(arguments: Iterable[str]) -> dict[str, set[str]]:
    traits: dict[str, set[str]] = {}
    for text in arguments:
        device, sign, trait = text.partition("=")
        if not (device and sign and trait):
            raise InvalidInput.of("--device-trait", f"got {text!r}", "give DEVICE=TRAIT")
        traits.setdefault(device, set()).add(trait)
    return traits
