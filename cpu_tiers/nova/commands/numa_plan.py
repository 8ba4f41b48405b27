"""Where a host's consumers go when it becomes NUMA-aware, from outside of its nova-compute.

The same question that the driver answers at its start (decision D8): first who
lacks shares, then who goes to which node, with those shares. Consumers that
hold nodes already stay there, and get their shares there. What consumers
hold, Placement tells; or, where it is down, Nova's database.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.accounting.healing import Gain, gain_shares, shares_of
from cpu_tiers.accounting.holdings import Holdings, Portion, joined, total_of
from cpu_tiers.accounting.missing_shares import missing_shares
from cpu_tiers.accounting.relocation import NoPlace, Relocation, Resident, arrange
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.nova.commands.offline_holdings import find_holdings
from cpu_tiers.nova.consumers import Node
from cpu_tiers.nova.residents import find_residents
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.reshaper import Situation, read_situation


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """Where the consumers of a host go, and what they get.

    :param host: the name of the root provider.
    :param consumers: those that move.
    :param residents: whose the consumers of the host are, as far as Nova knows them.
    :param gains: the shares that they get on the way, or where they are.
    :param relocations: where each goes that moves; empty unless all fit.
    :param without_place: who does not fit.
    """

    host: str
    consumers: tuple[str, ...]
    residents: Mapping[str, Resident]
    gains: Mapping[str, Gain] = field(default_factory=dict)
    relocations: tuple[Relocation, ...] = ()
    without_place: tuple[NoPlace, ...] = ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return what a person is told of who does not fit."""
        found = [one.fault for one in self.without_place]
        return (*found, *(fault for gain in self.gains.values() for fault in gain.faults))

    def limit(self, consumer: str) -> str:
        """Return why a consumer does not fit; empty where it does."""
        found = [one.fault for one in self.without_place if one.consumer == consumer]
        gain = self.gains.get(consumer)
        return "; ".join(fault.given for fault in (*found, *(gain.faults if gain else ())))

    def goes_to(self, consumer: str) -> Portion:
        """Return what a consumer gets of which provider; nobody gets any unless all fit."""
        if self.faults:
            return {}
        moves = (one.resources for one in self.relocations if one.consumer == consumer)
        gain = self.gains.get(consumer)
        of_nodes = {n: r for n, r in gain.goes_to.items() if n != self.host} if gain else {}
        return joined([*moves, of_nodes])


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
    return _plan(node, Situation(tree=tree, held=find_holdings(node, tree), on_nodes={}))


def _plan(node: Node, situation: Situation) -> MovePlan:
    tree, root = situation.tree, situation.tree.root.name
    of_root = {consumer: {root: resources} for consumer, resources in situation.held.items()}
    held = {
        consumer: joined([of_root.get(consumer, {}), situation.on_nodes.get(consumer, {})])
        for consumer in (*of_root, *(situation.on_nodes.keys() - of_root.keys()))
    }
    residents = find_residents(node, held.keys())
    gains = {gain.demand.consumer: gain for gain in _shares(tree, held, residents)}
    going = {
        consumer: joined([of_root[consumer], gains[consumer].goes_to])[root]
        if consumer in gains
        else resources
        for consumer, resources in situation.held.items()
    }
    gained = ({n: r for n, r in gain.goes_to.items() if n != root} for gain in gains.values())
    used = joined([*situation.on_nodes.values(), *gained])
    found = arrange(tree, going, residents, used)
    return MovePlan(
        host=node.name,
        consumers=tuple(sorted(situation.held)),
        residents=residents,
        gains=gains,
        relocations=() if found.without_place else found.relocations,
        without_place=found.without_place,
    )


def _shares(
    tree: ProviderTree, held: Holdings, residents: Mapping[str, Resident]
) -> tuple[Gain, ...]:
    """Return the shares that consumers lack; those of the root move along."""
    inventories = shares_of(tree)
    if not inventories:
        return ()
    holders = {uuid: one.holder for uuid, one in residents.items() if one.holder}
    demands = missing_shares(total_of(held), holders)
    return gain_shares(inventories, held, demands, along=tree.root.name)
