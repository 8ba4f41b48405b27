"""Where a host's consumers go when it becomes NUMA-aware, from outside of its nova-compute.

The same question that the driver answers at its start (decision D8): first who
lacks shares, then who goes to which compute_node, with those shares. Consumers that
hold nodes already stay there, and get their shares there. What consumers
hold, Placement tells; or, where it is down, Nova's database.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.accounting.healing import Addition, plan_share_additions, shares_of
from cpu_tiers.accounting.holdings import Holdings, Portion, joined, total_of
from cpu_tiers.accounting.missing_shares import missing_shares
from cpu_tiers.accounting.relocation import Relocation, Resident, UnplacedPart, assign_to_nodes
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.nova.commands.offline_holdings import find_holdings
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.residents import find_residents
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.numa_reshape import ReshapeInput, read_reshape_input


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """Where the consumers of a host go, and what they get.

    :param host: the name of the root provider.
    :param consumers: those that move.
    :param residents: whose the consumers of the host are, as far as Nova knows them.
    :param additions: the shares that they get on the way, or where they are.
    :param relocations: where each goes that moves; empty unless all fit.
    :param unplaced: who does not fit.
    """

    host: str
    consumers: tuple[str, ...]
    residents: Mapping[str, Resident]
    additions: Mapping[str, Addition] = field(default_factory=dict)
    relocations: tuple[Relocation, ...] = ()
    unplaced: tuple[UnplacedPart, ...] = ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return what a person is told of who does not fit."""
        found = [one.fault for one in self.unplaced]
        return (
            *found,
            *(fault for addition in self.additions.values() for fault in addition.faults),
        )

    def limit(self, consumer: str) -> str:
        """Return why a consumer does not fit; empty where it does."""
        found = [one.fault for one in self.unplaced if one.consumer == consumer]
        addition = self.additions.get(consumer)
        return "; ".join(fault.given for fault in (*found, *(addition.faults if addition else ())))

    def goes_to(self, consumer: str) -> Portion:
        """Return what a consumer gets of which provider; nobody gets any unless all fit."""
        if self.faults:
            return {}
        moves = (one.resources for one in self.relocations if one.consumer == consumer)
        addition = self.additions.get(consumer)
        of_nodes = (
            {n: r for n, r in addition.goes_to.items() if n != self.host} if addition else {}
        )
        return joined([*moves, of_nodes])


def plan_moves(client: PlacementClient, compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return what a start of nova-compute does with the consumers of a host.

    :param tree: the host's, as it is going to be.
    :raises PlacementError: the reshape would be refused.
    """
    return _plan(compute_node, read_reshape_input(client, tree))


def plan_offline(compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return the same without Placement, from what consumers must hold.

    :raises InvalidInput: Nova's database does not tell.
    """
    return _plan(
        compute_node, ReshapeInput(tree=tree, held=find_holdings(compute_node, tree), on_nodes={})
    )


def _plan(compute_node: ComputeNode, reshape_input: ReshapeInput) -> MovePlan:
    tree, root = reshape_input.tree, reshape_input.tree.root.name
    of_root = {consumer: {root: resources} for consumer, resources in reshape_input.held.items()}
    held = {
        consumer: joined([of_root.get(consumer, {}), reshape_input.on_nodes.get(consumer, {})])
        for consumer in (*of_root, *(reshape_input.on_nodes.keys() - of_root.keys()))
    }
    residents = find_residents(compute_node, held.keys())
    additions = {
        addition.shortfall.consumer: addition for addition in _shares(tree, held, residents)
    }
    going = {
        consumer: joined([of_root[consumer], additions[consumer].goes_to])[root]
        if consumer in additions
        else resources
        for consumer, resources in reshape_input.held.items()
    }
    gained = (
        {n: r for n, r in addition.goes_to.items() if n != root} for addition in additions.values()
    )
    used = joined([*reshape_input.on_nodes.values(), *gained])
    found = assign_to_nodes(tree, going, residents, used)
    return MovePlan(
        host=compute_node.name,
        consumers=tuple(sorted(reshape_input.held)),
        residents=residents,
        additions=additions,
        relocations=() if found.unplaced else found.relocations,
        unplaced=found.unplaced,
    )


def _shares(
    tree: ProviderTree, held: Holdings, residents: Mapping[str, Resident]
) -> tuple[Addition, ...]:
    """Return the shares that consumers lack; those of the root move along."""
    inventories = shares_of(tree)
    if not inventories:
        return ()
    owners = {uuid: one.owner for uuid, one in residents.items() if one.owner}
    shortfalls = missing_shares(total_of(held), owners)
    return plan_share_additions(inventories, held, shortfalls, along=tree.root.name)
