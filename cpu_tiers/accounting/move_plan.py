"""The plan of nova-compute for a host with servers that begins to report its NUMA nodes.

First consumers get their missing shares, and afterwards CPUs, memory and shares of the root move
to nodes (decision D8). Consumers with allocations of nodes stay on these nodes, and get their
shares of these nodes. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.accounting.healing import share_inventories
from cpu_tiers.accounting.holdings import (
    Amounts,
    ConsumerId,
    Holdings,
    Portion,
    ProviderName,
    sum_portions,
)
from cpu_tiers.accounting.missing_shares import Addition, missing_shares, plan_share_additions
from cpu_tiers.accounting.relocation import Relocation, Resident, UnplacedPart, assign_to_nodes
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import ProviderTree


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


def plan_moves(
    tree: ProviderTree,
    of_root: Mapping[ConsumerId, Amounts],
    on_nodes: Holdings[ProviderName],
    residents: Mapping[ConsumerId, Resident],
) -> MovePlan:
    """Return the relocations and additions of the consumers of a host.

    :param tree: the provider tree of the host as it is going to be.
    :param of_root: the amounts of the root that the moving consumers hold.
    :param on_nodes: the amounts of NUMA nodes that consumers hold already.
    """
    root = ProviderName(tree.root.name)
    on_root = Holdings({c: Portion({root: amounts}) for c, amounts in of_root.items()})
    holdings = on_root + on_nodes
    additions = {a.shortfall.consumer: a for a in _share_additions(tree, holdings, residents)}
    # The shares of the root move along with its VCPU; the others are used on the nodes.
    added = Holdings({consumer: addition.goes_to for consumer, addition in additions.items()})
    going = {consumer: (on_root + added).of(consumer)[root] for consumer in on_root}
    used = on_nodes.total + added.total.without(root)
    relocations, unplaced = assign_to_nodes(tree, going, residents, used)
    return MovePlan(
        host=root,
        consumers=tuple(sorted(of_root)),
        residents=residents,
        additions=additions,
        relocations=() if unplaced else relocations,
        unplaced=unplaced,
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
