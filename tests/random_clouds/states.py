"""Random states of a Placement, and random queries: what the simulation is held against."""

import itertools
import random
import uuid
from collections.abc import Iterator, Sequence

from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from tests.random_clouds.providers import ALLOCATION, insert, placement_rows

CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB", "SRIOV_NET_VF", "CUSTOM_CARD")
TRAITS = ("HW_CPU_X86_AVX2", "HW_NUMA_ROOT", "STORAGE_DISK_SSD", "CUSTOM_RED", "CUSTOM_BLUE")
SHARES = "MISC_SHARES_VIA_AGGREGATE"
_AGGREGATE = """
    INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id)
    SELECT p.id, a.id FROM resource_providers p, placement_aggregates a
    WHERE p.uuid = ? AND a.uuid = ?"""


def draw_state(rng: random.Random) -> list[CloudProvider]:
    """Return the providers of 1 to 4 hosts, flat or nested, and of 0 to 2 disk pools."""
    aggregates = [_uuid(rng) for _ in range(3)]
    nested, pools = rng.random() < 0.8, rng.choice([0, 0, 1, 2])
    states: list[CloudProvider] = []
    for number in range(rng.choice([1, 2, 3, 4])):
        states += _tree(rng, f"host-{number}", aggregates, most=6 if nested else 0)
    for number in range(pools):
        traits = _some(rng, TRAITS, 0.2) | {SHARES}
        classes = rng.choice([["DISK_GB"], ["DISK_GB"], ["DISK_GB", "CUSTOM_CARD"]])
        states.append(_provider(rng, f"pool-{number}", None, classes, traits, aggregates))
    return states


def write_state(states: Sequence[CloudProvider]) -> None:
    """Write providers into an empty Placement, each parent before its children."""
    names = {state.uuid: state.name for state in states}
    with placement_rows() as rows:
        for aggregate in {name for state in states for name in state.aggregates}:
            rows.execute("INSERT INTO placement_aggregates (uuid) VALUES (?)", (aggregate,))
        for state in states:
            provider = ResourceProvider(
                name=state.name,
                parent=state.parent and names[state.parent],
                inventories=state.inventories,
                traits=state.traits,
            )
            insert(rows, provider, state.uuid)
            for aggregate in state.aggregates:
                rows.execute(_AGGREGATE, (state.uuid, aggregate))
            for name, amount in state.used.items():
                rows.execute(ALLOCATION, ("servers that exist", amount, state.name, name))


def draw_query(rng: random.Random, states: Sequence[CloudProvider]) -> CandidateQuery:
    """Return a query of an unsuffixed group, of groups with suffixes, or of both."""
    suffixed = rng.choice([0, 0, 1, 2, 2, 3])
    groups = []
    if not suffixed or rng.random() < 0.7:
        groups.append(_group(rng, states, "", CLASSES))
    # Where the policy is not "none", Placement adds up the amounts of the unsuffixed group and of
    # a group with a suffix in an object that further candidates use, too, and refuses them.
    policy = rng.choice(["none", "none", "isolate"]) if suffixed > 1 else None
    apart = policy != "none" and bool(groups)
    classes = [name for name in CLASSES if not apart or name not in groups[0].resources]
    groups += [_group(rng, states, f"_{n}", classes) for n in range(suffixed if classes else 0)]
    if len(groups) == 1 and not groups[0].resources:
        return draw_query(rng, states)
    return CandidateQuery(
        groups=tuple(groups),
        group_policy=policy,
        same_subtree=tuple(_subtrees(rng, groups)),
        root_required=_some(rng, TRAITS, 0.02),
        root_forbidden=_some(rng, ["CUSTOM_GREEN"], 0.1),
    )


def likely_query(
    rng: random.Random, states: list[CloudProvider], cloud: SimulatedCloud
) -> CandidateQuery:
    """Return a query that mostly has candidates: of few queries the first that has."""
    for _ in range(5):
        query = draw_query(rng, states)
        if cloud.candidates(query).allocation_requests:
            break
    return query


def _tree(
    rng: random.Random, name: str, aggregates: Sequence[str], most: int
) -> Iterator[CloudProvider]:
    root = _provider(rng, name, None, _classes(rng, 0.9), _some(rng, TRAITS, 0.6), aggregates)
    tree = [root]
    for number in range(rng.randint(0, most)):
        parent = rng.choice(tree).uuid
        traits = _some(rng, TRAITS, 0.4)
        child = f"{name}-{number}"
        tree.append(_provider(rng, child, parent, _classes(rng, 0.4), traits, aggregates))
    yield from tree


def _provider(
    rng: random.Random,
    name: str,
    parent: str | None,
    classes: Sequence[str],
    traits: frozenset[str],
    aggregates: Sequence[str],
) -> CloudProvider:
    inventories = {name: _inventory(rng) for name in classes}
    return CloudProvider(
        uuid=_uuid(rng),
        name=name,
        parent=parent,
        inventories=inventories,
        traits=traits,
        aggregates=_some(rng, aggregates, 0.5),
        used={
            # Where a ratio or a reserved amount was changed later, more is used than the capacity.
            name: rng.choice([0, 0, 0, rng.randint(0, inventory.capacity + 2)])
            for name, inventory in inventories.items()
        },
    )


def _inventory(rng: random.Random) -> Inventory:
    total = rng.randint(2, 24)
    return Inventory(
        total=total,
        reserved=rng.choice([0, 0, 0, rng.randint(0, total // 2)]),
        min_unit=rng.choice([1, 1, 1, 2]),
        max_unit=rng.choice([total, total, max(total // 2, 1)]),
        step_size=rng.choice([1, 1, 1, 1, 1, 2, 3]),
        allocation_ratio=rng.choice([1.0, 1.0, 1.5, 2.0, 0.9]),
    )


def _group(
    rng: random.Random, states: Sequence[CloudProvider], suffix: str, classes: Sequence[str]
) -> RequestGroup:
    wanted = rng.sample(classes, min(len(classes), rng.choice([1, 1, 2])))
    required = _some(rng, TRAITS, 0.06)
    any_of = frozenset([frozenset(rng.sample(TRAITS, 2))]) if rng.random() < 0.1 else frozenset()
    known = sorted({name for state in states for name in state.aggregates}) or [_uuid(rng)]
    wanted_aggregates = rng.sample(known, min(2, len(known))) if rng.random() < 0.15 else []
    return RequestGroup(
        suffix=suffix,
        resources={name: rng.choice([1, 1, 1, 2, 2, 3, 6]) for name in wanted},
        required=required,
        forbidden=_some(rng, TRAITS, 0.05) - required,
        any_of=any_of,
        in_tree=rng.choice(states).uuid if rng.random() < 0.1 else None,
        member_of=frozenset([frozenset(wanted_aggregates)] if wanted_aggregates else []),
        not_member_of=frozenset(rng.sample(known, 1) if rng.random() < 0.1 else []),
    )


def _subtrees(rng: random.Random, groups: list[RequestGroup]) -> Iterator[tuple[str, ...]]:
    """Yield a ``same_subtree`` or none; a group of it may come to request traits only."""
    suffixed = [number for number, group in enumerate(groups) if group.suffix]
    if len(suffixed) < 2 or rng.random() < 0.5:
        return
    together = rng.sample(suffixed, rng.choice([2, len(suffixed)]))
    if rng.random() < 0.5:
        number = together[0]
        groups[number] = groups[number]._replace(resources={})
    yield tuple(groups[number].suffix for number in together)


def _classes(rng: random.Random, share: float) -> list[str]:
    return [name for name in CLASSES if rng.random() < share]


def _some(rng: random.Random, names: Sequence[str], share: float) -> frozenset[str]:
    return frozenset(itertools.compress(names, [rng.random() < share for _ in names]))


def _uuid(rng: random.Random) -> str:
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))
