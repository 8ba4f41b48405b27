"""What consumers of a host are to get, provider by provider, and who finds no room.

On a host that reports its NUMA nodes, shares stand where VCPU stands, and a
server that holds nothing at all gets its CPUs and memory on nodes. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting.holdings import Holdings, Portion, joined, total, total_of
from cpu_tiers.accounting.missing_shares import Demand, Verdict, divide_demands, find_rooms
from cpu_tiers.accounting.relocation import Resident, arrange
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import Inventory, ProviderTree
from cpu_tiers.model.names import VCPU_SHARES

Inventories = Mapping[str, Mapping[str, Inventory]]
"""Provider to resource class to inventory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a consumer is to get.

    :param demand: all of it.
    :param goes_to: where, by provider; empty where no place is known.
    :param limits: what is in the way, by provider; empty where nothing is.
    """

    demand: Demand
    goes_to: Portion
    limits: Mapping[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return what a person is told of what finds no room."""
        return tuple(
            Verdict(demand=self.demand, limit=limit).fault(provider)
            for provider, limit in self.limits.items()
        )


def gain_shares(
    inventories: Inventories,
    held: Holdings,
    demands: Iterable[Demand],
    *,
    along: str | None = None,
) -> tuple[Gain, ...]:
    """Return the shares that consumers get where they hold VCPU, in proportion to it.

    :param inventories: of all providers that have shares, or are to have some.
        A consumer gets none of others.
    :param demands: of each consumer, in all.
    :param along: a provider of which the VCPU moves: shares move along, and it
        needs no room for them.
    """
    divided = divide_demands(demands, held)
    gains = _gains(
        inventories, held, {n: divided[n] for n in divided if n in {along, *inventories}}
    )
    return tuple(
        replace(gain, limits={n: limit for n, limit in gain.limits.items() if n != along})
        for gain in gains
    )


def heal(
    tree: ProviderTree,
    held: Holdings,
    lacking: Iterable[Demand],
    without: Iterable[Demand],
    residents: Mapping[str, Resident],
) -> tuple[Gain, ...]:
    """Return what consumers get of a host as it is.

    :param held: by the names of the providers.
    :param lacking: the shares that consumers lack, in all.
    :param without: all that consumers ask for that hold nothing.
    :param residents: where the guests of those run.
    """
    root = tree.root
    on_root = VCPU_SHARES in root.inventories  # those of a provider.yaml, perhaps
    by_vcpu = {c: {root.name: r} for c, r in total_of(held).items()} if on_root else held
    shares = gain_shares(shares_of(tree), by_vcpu, lacking)
    taken = {**held, "": joined(gain.goes_to for gain in shares if not gain.limits)}
    return shares + _all(tree, taken, without, residents)


def shares_of(tree: ProviderTree) -> dict[str, dict[str, Inventory]]:
    """Return the inventories of shares of a host, by provider."""
    return {
        provider.name: {VCPU_SHARES: provider.inventories[VCPU_SHARES]}
        for provider in tree.providers
        if VCPU_SHARES in provider.inventories
    }


def _all(
    tree: ProviderTree,
    held: Holdings,
    demands: Iterable[Demand],
    residents: Mapping[str, Resident],
) -> tuple[Gain, ...]:
    """Return what consumers get that hold nothing.

    What NUMA nodes have is arranged as on a host that becomes NUMA-aware; all
    else is the root's.
    """
    root, *nodes = tree.providers
    whole = {demand.consumer: demand for demand in demands}
    asked = {consumer: demand.resources for consumer, demand in whole.items()}
    found = arrange(tree, asked if nodes else {}, residents, joined(held.values()))
    whys: dict[str, list[str]] = {}
    for one in found.without_place:
        whys.setdefault(one.consumer, []).append(one.why)
    homeless = (
        Gain(demand=whole[consumer], goes_to={}, limits={root.name: "; ".join(why)})
        for consumer, why in whys.items()
    )
    on_nodes = {one.consumer: one.resources for one in found.relocations}
    demanded: dict[str, list[Demand]] = {}
    for consumer, demand in whole.items():
        if consumer in whys:
            continue
        places = on_nodes.get(consumer, {})
        moved = total(places)
        stays = {name: n for name, n in demand.resources.items() if name not in moved}
        for provider, resources in {**({root.name: stays} if stays else {}), **places}.items():
            demanded.setdefault(provider, []).append(replace(demand, resources=resources))
    inventories = {provider.name: provider.inventories for provider in tree.providers}
    return (*homeless, *_gains(inventories, held, demanded))


def _gains(
    inventories: Inventories, held: Holdings, demands: Mapping[str, Iterable[Demand]]
) -> tuple[Gain, ...]:
    """Return what consumers demand of each provider, by consumer, and whether there is room."""
    gains: dict[str, Gain] = {}
    for provider, verdicts in find_rooms(inventories, held, demands).items():
        for verdict in verdicts:
            demand = verdict.demand
            before = gains.get(demand.consumer, Gain(demand=demand, goes_to={}))
            goes_to = {**before.goes_to, provider: demand.resources}
            gains[demand.consumer] = Gain(
                demand=replace(demand, resources=total(goes_to)),
                goes_to=goes_to,
                limits={**before.limits, **({provider: verdict.limit} if verdict.limit else {})},
            )
    return tuple(gains.values())
