"""The relocations of a host's consumers to its NUMA nodes, computed outside of nova-compute.

``reshape plan`` tells what the driver does at its next start (decision D8): first consumers get
their missing shares, and afterwards CPUs, memory and shares move to nodes. Consumers with
allocations of nodes stay on these nodes, and get their shares of these nodes. Allocations are read
from Placement; if Placement is down, they are computed from Nova's database.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.accounting.healing import Addition, plan_share_additions, share_inventories
from cpu_tiers.accounting.holdings import (
    ConsumerId,
    Holdings,
    Portion,
    ProviderName,
    sum_portions,
)
from cpu_tiers.accounting.missing_shares import missing_shares
from cpu_tiers.accounting.relocation import Relocation, Resident, UnplacedPart, assign_to_nodes
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import ProviderTree
from cpu_tiers.nova.consumers import ComputeNode
from cpu_tiers.nova.numa.residents import find_residents
from cpu_tiers.tools.nova.offline_holdings import find_root_amounts
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.numa_reshape import ReshapeInput, read_reshape_input


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """The relocations and additions of a host's consumers.

    :param host: the name of the root provider.
    :param consumers: the consumers that move.
    :param residents: of all consumers of the host that Nova knows.
    :param additions: the shares that consumers get, before they move or where
        they stay.
    :param relocations: of the consumers that move; empty unless all of them fit.
    :param unplaced: the parts of consumers that do not fit.
    """

    host: ProviderName
    consumers: tuple[ConsumerId, ...]
    residents: Mapping[ConsumerId, Resident]
    additions: Mapping[ConsumerId, Addition] = field(default_factory=dict)
    relocations: tuple[Relocation, ...] = ()
    unplaced: tuple[UnplacedPart, ...] = ()

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return a message for each part and each addition that does not fit."""
        of_additions = (fault for a in self.additions.values() for fault in a.faults)
        return (*(part.fault for part in self.unplaced), *of_additions)

    def limit(self, consumer: ConsumerId) -> str:
        """Return why a consumer does not fit; empty if it fits."""
        faults = [part.fault for part in self.unplaced if part.consumer == consumer]
        addition = self.additions.get(consumer)
        return "; ".join(f.given for f in (*faults, *(addition.faults if addition else ())))

    def goes_to(self, consumer: ConsumerId) -> Portion[ProviderName]:
        """Return the amounts that a consumer gets of nodes; empty unless all consumers fit."""
        if self.faults:
            return Portion()
        moves = [r.resources for r in self.relocations if r.consumer == consumer]
        if consumer in self.additions:
            moves.append(self.additions[consumer].goes_to.without(self.host))
        return sum_portions(moves)


def plan_moves(client: PlacementClient, compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return what nova-compute does with the consumers of a host at its next start.

    :param tree: the provider tree of the host as it is going to be.
    :raises PlacementError: the reshape would be refused.
    """
    return _plan(compute_node, read_reshape_input(client, tree))


def plan_offline(compute_node: ComputeNode, tree: ProviderTree) -> MovePlan:
    """Return the plan without Placement, from the flavors of the servers.

    :raises InvalidInput: Nova's database does not tell what a consumer holds.
    """
    amounts = find_root_amounts(compute_node, tree)
    return _plan(compute_node, ReshapeInput(tree=tree, of_root=amounts, on_nodes=Holdings()))


def _plan(compute_node: ComputeNode, before: ReshapeInput) -> MovePlan:
    tree, root = before.tree, ProviderName(before.tree.root.name)
    on_root = Holdings({c: Portion({root: amounts}) for c, amounts in before.of_root.items()})
    holdings = on_root + before.on_nodes
    residents = find_residents(compute_node, holdings.keys())
    additions = {a.shortfall.consumer: a for a in _share_additions(tree, holdings, residents)}
    # The shares of the root move along with its VCPU; the others are used on the nodes.
    added = Holdings({consumer: addition.goes_to for consumer, addition in additions.items()})
    going = {consumer: (on_root + added).of(consumer)[root] for consumer in on_root}
    used = before.on_nodes.total + added.total.without(root)
    assignment = assign_to_nodes(tree, going, residents, used)
    return MovePlan(
        host=compute_node.name,
        consumers=tuple(sorted(before.of_root)),
        residents=residents,
        additions=additions,
        relocations=() if assignment.unplaced else assignment.relocations,
        unplaced=assignment.unplaced,
    )


def _share_additions(
    tree: ProviderTree,
    holdings: Holdings[ProviderName],
    residents: Mapping[ConsumerId, Resident],
) -> tuple[Addition, ...]:
    """Return the missing shares of consumers; shares of the root need no room."""
    inventories = share_inventories(tree)
    if not inventories:
        return ()
    owners = {uuid: resident.owner for uuid, resident in residents.items() if resident.owner}
    shortfalls = missing_shares(holdings.amounts, owners)
    root = ProviderName(tree.root.name)
    return plan_share_additions(inventories, holdings, shortfalls, along=root)
