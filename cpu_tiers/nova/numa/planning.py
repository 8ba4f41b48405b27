"""Where a host's consumers go when it becomes NUMA-aware, from outside of its nova-compute.

The same question that the driver answers at its start (decision D8): first who
lacks shares, then who goes to which node, with those shares. What consumers
hold, Placement tells; or, where it is down, Nova's database.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova.consumers import Node
from cpu_tiers.nova.numa.holdings import find_holdings
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.relocation import (
    Held,
    Relocation,
    Resident,
    ServersDoNotFit,
    consumer_name,
    relocate,
)
from cpu_tiers.placement.reshape import missing_shares
from cpu_tiers.placement.reshaper import Situation, read_situation


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """Where the consumers of a host go.

    :param host: the name of the root provider.
    :param residents: whose those are that move, as far as Nova knows them.
    :param adds: the shares that they get on the way.
    :param relocations: where each goes; empty unless all fit.
    :param faults: who does not fit.
    """

    host: str
    consumers: tuple[str, ...]
    residents: Mapping[str, Resident]
    adds: Held
    relocations: tuple[Relocation, ...] = ()
    faults: tuple[Fault, ...] = ()

    def limit(self, consumer: str) -> str:
        """Return why a consumer does not fit; empty where it does."""
        resident = self.residents.get(consumer, Resident())
        name = consumer_name(consumer, resident.holder)
        return "; ".join(fault.given for fault in self.faults if fault.where == name)


def plan_moves(client: PlacementClient, node: Node, tree: ProviderTree) -> MovePlan:
    """Return what a start of nova-compute does with the consumers of a host.

    :param tree: the host's, as it is going to be.
    :raises PlacementError: the reshape would be refused.
    """
    return _plan(node, read_situation(client, tree))


def plan_offline(node: Node, tree: ProviderTree) -> MovePlan:
    """Return the same without Placement, from what consumers must hold.

    :raises InvalidInput: Nova's database does not tell.
    """
    return _plan(node, Situation(tree=tree, held=find_holdings(node, tree), used={}))


def _plan(node: Node, situation: Situation) -> MovePlan:
    tree, held = situation.tree, situation.held
    residents = find_residents(node, held.keys())
    adds: dict[str, Mapping[str, int]] = {}
    if any(VCPU_SHARES in provider.inventories for provider in tree.providers):
        holders = {uuid: found.holder for uuid, found in residents.items() if found.holder}
        adds = {d.consumer: d.resources for d in missing_shares(held, holders)}
    going = {uuid: {**resources, **adds.get(uuid, {})} for uuid, resources in held.items()}
    relocations: tuple[Relocation, ...] = ()
    faults: tuple[Fault, ...] = ()
    try:
        relocations = relocate(tree, going, residents, situation.used)
    except ServersDoNotFit as error:
        faults = error.faults
    return MovePlan(
        host=node.name,
        consumers=tuple(sorted(held)),
        residents=residents,
        adds=adds,
        relocations=relocations,
        faults=faults,
    )
