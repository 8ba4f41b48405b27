"""What consumers of a host are to get, provider by provider, and who finds no room.

On a host that reports its NUMA nodes, shares stand where VCPU stands, and a
server that holds nothing at all gets its CPUs and memory on nodes. Pure.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from cpu_tiers.accounting.holdings import Holdings, Portion, joined, total, total_of
from cpu_tiers.accounting.missing_shares import Shortfall, Verdict, divide_by_vcpu, find_rooms
from cpu_tiers.accounting.relocation import Resident, assign_to_nodes
from cpu_tiers.errors import Fault
from cpu_tiers.model.inventory import Inventory, ProviderTree
from cpu_tiers.model.names import VCPU_SHARES

Inventories = Mapping[str, Mapping[str, Inventory]]
"""Provider to resource class to inventory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addition:
    """What a consumer is to get.

    :param shortfall: all of it.
    :param goes_to: where, by provider; empty where no place is known.
    :param limits: what is in the way, by provider; empty where nothing is.
    """

    shortfall: Shortfall
    goes_to: Portion
    limits: Mapping[str, str] = field(default_factory=dict)

    @property
    def faults(self) -> tuple[Fault, ...]:
        """Return what a person is told of what finds no room."""
        return tuple(
            Verdict(shortfall=self.shortfall, limit=limit).fault(provider)
            for provider, limit in self.limits.items()
        )


def plan_share_additions(
    inventories: Inventories,
    held: Holdings,
    shortfalls: Iterable[Shortfall],
    *,
    along: str | None = None,
) -> tuple[Addition, ...]:
    """Return the shares that consumers get where they hold VCPU, in proportion to it.

    :param inventories: of all providers that have shares, or are to have some.
        A consumer gets none of others.
    :param shortfalls: of each consumer, in all.
    :param along: a provider of which the VCPU moves: shares move along, and it
        needs no room for them.
    """
    divided = divide_by_vcpu(shortfalls, held)
    additions = _additions(
        inventories, held, {n: divided[n] for n in divided if n in {along, *inventories}}
    )
    return tuple(
        replace(addition, limits={n: limit for n, limit in addition.limits.items() if n != along})
        for addition in additions
    )


def plan_additions(
    tree: ProviderTree,
    held: Holdings,
    lacking: Iterable[Shortfall],
    without: Iterable[Shortfall],
    residents: Mapping[str, Resident],
) -> tuple[Addition, ...]:
    """Return what consumers get of a host as it is.

    :param held: by the names of the providers.
    :param lacking: the shares that consumers lack, in all.
    :param without: all that consumers ask for that hold nothing.
    :param residents: where the guests of those run.
    """
    root = tree.root
    on_root = VCPU_SHARES in root.inventories  # those of a provider.yaml, perhaps
    by_vcpu = {c: {root.name: r} for c, r in total_of(held).items()} if on_root else held
    shares = plan_share_additions(shares_of(tree), by_vcpu, lacking)
    taken = {**held, "": joined(addition.goes_to for addition in shares if not addition.limits)}
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
    shortfalls: Iterable[Shortfall],
    residents: Mapping[str, Resident],
) -> tuple[Addition, ...]:
    """Return what consumers get that hold nothing.

    What NUMA nodes have is arranged as on a host that becomes NUMA-aware; all
    else is the root's.
    """
    root, *nodes = tree.providers
    whole = {shortfall.consumer: shortfall for shortfall in shortfalls}
    asked = {consumer: shortfall.resources for consumer, shortfall in whole.items()}
    found = assign_to_nodes(tree, asked if nodes else {}, residents, joined(held.values()))
    whys: dict[str, list[str]] = {}
    for one in found.unplaced:
        whys.setdefault(one.consumer, []).append(one.why)
    homeless = (
        Addition(shortfall=whole[consumer], goes_to={}, limits={root.name: "; ".join(why)})
        for consumer, why in whys.items()
    )
    on_nodes = {one.consumer: one.resources for one in found.relocations}
    demanded: dict[str, list[Shortfall]] = {}
    for consumer, shortfall in whole.items():
        if consumer in whys:
            continue
        places = on_nodes.get(consumer, {})
        moved = total(places)
        stays = {name: n for name, n in shortfall.resources.items() if name not in moved}
        for provider, resources in {**({root.name: stays} if stays else {}), **places}.items():
            demanded.setdefault(provider, []).append(replace(shortfall, resources=resources))
    inventories = {provider.name: provider.inventories for provider in tree.providers}
    return (*homeless, *_additions(inventories, held, demanded))


def _additions(
    inventories: Inventories, held: Holdings, shortfalls: Mapping[str, Iterable[Shortfall]]
) -> tuple[Addition, ...]:
    """Return what consumers shortfall of each provider, by consumer, and whether there is room."""
    additions: dict[str, Addition] = {}
    for provider, verdicts in find_rooms(inventories, held, shortfalls).items():
        for verdict in verdicts:
            shortfall = verdict.shortfall
            before = additions.get(shortfall.consumer, Addition(shortfall=shortfall, goes_to={}))
            goes_to = {**before.goes_to, provider: shortfall.resources}
            additions[shortfall.consumer] = Addition(
                shortfall=replace(shortfall, resources=total(goes_to)),
                goes_to=goes_to,
                limits={**before.limits, **({provider: verdict.limit} if verdict.limit else {})},
            )
    return tuple(additions.values())
