"""What the consumers of a host get, and where they go when the host begins to report NUMA nodes.

On a host that reports its NUMA nodes, a server gets its missing shares on the nodes where it
holds VCPU, and a server that holds nothing at all gets what its flavor requests. On a host that
begins to report NUMA nodes, consumers first get their missing shares, and afterwards CPUs, memory
and shares of the root move to nodes; consumers with allocations of nodes stay there (decision D8).
Pure.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting import missing_shares
from cpu_tiers.accounting.holdings import Amounts, ConsumerId, Holdings, Portion, ProviderName
from cpu_tiers.accounting.missing_shares import Addition, Owner, Shortfall
from cpu_tiers.accounting.relocation import Relocation, Resident, UnplacedPart, assign_to_nodes
from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.extra_specs.guest_cpus import GuestCpus
from cpu_tiers.model.inventory import Inventory, ProviderTree
from cpu_tiers.model.names import MEMORY_MB, NUMA_SERVER, PCPU, VCPU, VCPU_SHARES
from cpu_tiers.model.numa import OF_NODES
from cpu_tiers.translators import sizes
from cpu_tiers.translators.contract import ServerRequest, as_existing

LOG = logging.getLogger(__name__)

ByName = Portion[ProviderName]


@dataclass(frozen=True, slots=True, kw_only=True)
class Untouched:
    """A consumer that is left alone, because it is no server on its host.

    :param server: the uuid of the server of the allocations; empty for none.
    :param text: what the consumer has and is, and the command that mends it.
    :param is_wrong: whether a server has allocations on a host that it is not on.
    """

    consumer: ConsumerId
    server: str
    text: str
    is_wrong: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HealPlan:
    """The amounts that the consumers of a host get, and whether there is room.

    :param shares: the inventories of shares that the plan is for, by provider.
    :param has_nodes: the host reports its NUMA nodes.
    :param untouched: the consumers that get nothing, and the servers of the host that are held
        elsewhere.
    """

    host: str
    shares: Mapping[ProviderName, Mapping[str, Inventory]] = field(default_factory=dict)
    has_nodes: bool = False
    additions: tuple[Addition, ...] = ()
    untouched: tuple[Untouched, ...] = ()

    @property
    def fits(self) -> bool:
        """Tell whether there is room for all additions."""
        return not any(addition.limits for addition in self.additions)


def plan_additions(
    tree: ProviderTree,
    holdings: Holdings[ProviderName],
    without_shares: Iterable[Shortfall],
    without_anything: Iterable[Shortfall],
    residents: Mapping[ConsumerId, Resident],
) -> tuple[Addition, ...]:
    """Return the additions for the consumers of a host, as Placement has the host now.

    :param without_shares: the shares that consumers lack, of all providers together.
    :param without_anything: all that the flavor requests, of consumers that hold nothing.
    :param residents: the place of the guests of ``without_anything``.
    """
    root = ProviderName(tree.root.name)
    by_vcpu = holdings
    if VCPU_SHARES in tree.root.inventories:  # a provider.yaml may give shares to the root
        by_vcpu = Holdings({c: Portion({root: held}) for c, held in holdings.amounts.items()})
    shares = missing_shares.plan_share_additions(share_inventories(tree), by_vcpu, without_shares)
    fitting = (addition.goes_to for addition in shares if not addition.limits)
    used = sum(fitting, holdings.total)
    return shares + _whole_additions(tree, used, without_anything, residents)


def partial_shortfalls(
    amounts: Mapping[ConsumerId, Amounts], owners: Mapping[ConsumerId, Owner]
) -> tuple[Shortfall, ...]:
    """Return what consumers with some shares hold less than they request.

    nova-compute leaves such consumers alone, because the shares may be of an older flavor.

    :param amounts: what each consumer holds of a whole host.
    """
    some = {c: held for c, held in amounts.items() if VCPU in held and VCPU_SHARES in held}
    bare = {c: {VCPU: held[VCPU]} for c, held in some.items()}
    due = missing_shares.missing_shares(bare, {c: o for c, o in owners.items() if c in bare})
    return tuple(
        replace(each, resources={VCPU_SHARES: missing})
        for each in due
        if (missing := each.shares - some[each.consumer][VCPU_SHARES]) > 0
    )


def without_anchor(tree: ProviderTree, holdings: Holdings[ProviderName]) -> frozenset[ConsumerId]:
    """Return the consumers of NUMA nodes that do not hold ``NUMA_SERVER`` of the root.

    Empty if the host does not report the class yet.
    """
    root = ProviderName(tree.root.name)
    if NUMA_SERVER not in tree.root.inventories:
        return frozenset()
    return frozenset(
        consumer
        for consumer, portion in holdings.items()
        if NUMA_SERVER not in portion.of(root) and portion.without(root).total.keys() & OF_NODES
    )


def with_anchors(
    additions: Iterable[Addition], owners: Mapping[ConsumerId, Owner], root: ProviderName
) -> tuple[Addition, ...]:
    """Return additions that also give 1 ``NUMA_SERVER`` of the root to the owners' consumers."""
    by_consumer = {addition.shortfall.consumer: addition for addition in additions}
    for consumer, owner in owners.items():
        nothing = Shortfall(consumer=consumer, owner=owner, resources={})
        before = by_consumer.get(consumer, Addition(shortfall=nothing, goes_to=Portion()))
        goes_to = before.goes_to + Portion({root: {NUMA_SERVER: 1}})
        shortfall = replace(before.shortfall, resources=goes_to.total)
        by_consumer[consumer] = replace(before, shortfall=shortfall, goes_to=goes_to)
    return tuple(by_consumer.values())


def share_inventories(tree: ProviderTree) -> dict[ProviderName, Mapping[str, Inventory]]:
    """Return the inventories of shares of a host, by provider."""
    return {
        ProviderName(provider.name): {VCPU_SHARES: provider.inventories[VCPU_SHARES]}
        for provider in tree.providers
        if VCPU_SHARES in provider.inventories
    }


def _whole_additions(
    tree: ProviderTree,
    used: ByName,
    shortfalls: Iterable[Shortfall],
    residents: Mapping[ConsumerId, Resident],
) -> tuple[Addition, ...]:
    """Return the additions for consumers without allocations.

    CPUs and memory go to NUMA nodes as in a :class:`MovePlan`, and everything else to the root.
    """
    root, *nodes = tree.providers
    whole = {shortfall.consumer: shortfall for shortfall in shortfalls}
    amounts = {consumer: shortfall.resources for consumer, shortfall in whole.items()}
    relocations, unplaced = assign_to_nodes(tree, amounts if nodes else {}, residents, used)
    reasons: dict[ConsumerId, list[str]] = {}
    for part in unplaced:
        reasons.setdefault(part.consumer, []).append(part.why)
    without_node = (
        Addition(shortfall=whole[c], goes_to=Portion(), limits={root.name: "; ".join(reason)})
        for c, reason in reasons.items()
    )
    on_nodes = {r.consumer: r.resources for r in relocations}
    by_provider: dict[ProviderName, list[Shortfall]] = {}
    for consumer, shortfall in whole.items():
        if consumer in reasons:
            continue
        places: ByName = on_nodes.get(consumer, Portion())
        stays = {n: a for n, a in shortfall.resources.items() if n not in places.total}
        if places and NUMA_SERVER in root.inventories:
            stays[NUMA_SERVER] = 1
        for provider, resources in (Portion({ProviderName(root.name): stays}) + places).items():
            provider_part = replace(shortfall, resources=resources)
            by_provider.setdefault(provider, []).append(provider_part)
    inventories = {ProviderName(each.name): each.inventories for each in tree.providers}
    return (*without_node, *missing_shares.additions_of(inventories, used, by_provider))


@dataclass(frozen=True, slots=True, kw_only=True)
class MovePlan:
    """The relocations and additions of the consumers of a host that begins to report NUMA nodes.

    :param consumers: the consumers that move.
    :param residents: of all consumers of the host that Nova knows.
    :param additions: the shares that consumers get, before they move or where they stay.
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
        addition_faults = (fault for a in self.additions.values() for fault in a.faults)
        return (*(part.fault for part in self.unplaced), *addition_faults)

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
        return sum(moves, Portion())


def plan_moves(
    tree: ProviderTree,
    root_amounts: Mapping[ConsumerId, Amounts],
    on_nodes: Holdings[ProviderName],
    residents: Mapping[ConsumerId, Resident],
) -> MovePlan:
    """Return the plan of nova-compute for a host.

    :param tree: the provider tree of the host as it is going to be.
    :param root_amounts: the amounts of the root that the moving consumers hold.
    :param on_nodes: the amounts of NUMA nodes that consumers hold already.
    """
    root = ProviderName(tree.root.name)
    on_root = Holdings({c: Portion({root: amounts}) for c, amounts in root_amounts.items()})
    holdings, shares = on_root + on_nodes, share_inventories(tree)
    owners = {uuid: resident.owner for uuid, resident in residents.items() if resident.owner}
    lacking = missing_shares.missing_shares(holdings.amounts, owners) if shares else ()
    # The shares of the root move along with its VCPU; the others are used on the nodes.
    planned = missing_shares.plan_share_additions(shares, holdings, lacking, along=root)
    additions = {addition.shortfall.consumer: addition for addition in planned}
    added = Holdings({consumer: addition.goes_to for consumer, addition in additions.items()})
    going = {consumer: (on_root + added).of(consumer)[root] for consumer in on_root}
    used = on_nodes.total + added.total.without(root)
    relocations, unplaced = assign_to_nodes(tree, going, residents, used)
    return MovePlan(
        host=root,
        consumers=tuple(sorted(root_amounts)),
        residents=residents,
        additions=additions,
        relocations=() if unplaced else relocations,
        unplaced=unplaced,
    )


def held_by_flavor(
    owner: Owner, cpus_of_nova: Callable[[], GuestCpus], *, has_pcpu: bool, on_nodes: bool = False
) -> dict[str, int]:
    """Return the amounts of a flavor, of the resource classes of NUMA nodes.

    :param cpus_of_nova: returns the CPUs that Nova has given the server, for a server whose
        flavor has faults (decision D72).
    :param has_pcpu: the host has PCPU. If it has not, dedicated CPUs are VCPU.
    :param on_nodes: the amounts are allocated on NUMA nodes. A server with nodes then holds what
        its nodes have, as after a move, and no other amount of its flavor.
    """
    server = ServerRequest(owner.flavor, owner.image)
    try:
        server.guest  # noqa: B018  # read here, so that it cannot fail later
    except InvalidInput as error:
        LOG.warning("%s holds the CPUs that Nova gives it: %s", owner.name, error)
        server = as_existing(server, cpus_of_nova())
    requested: dict[str, int] = {}
    for group in sizes.translate(server):
        requested |= group.resources
    if PCPU in requested and not has_pcpu:  # nova-scheduler requests VCPU of such hosts instead
        requested = {**requested, PCPU: 0, VCPU: owner.flavor.vcpus}
    if not (on_nodes and server.guest.nodes):
        requested |= _stated(server)
    return {name: requested[name] for name in sorted(OF_NODES) if requested.get(name)}


def _stated(server: ServerRequest) -> dict[str, int]:
    """Return the amounts of ``resources:`` extra specs, which replace other amounts as in Nova."""
    stated = {name: server.own_groups.amount(name) for name in OF_NODES}
    if server.cpus.dedicated:  # as in Nova, an amount of 0 beside such a CPU policy counts nothing
        stated = {MEMORY_MB: stated[MEMORY_MB]}
    return {name: amount for name, amount in stated.items() if amount is not None}
