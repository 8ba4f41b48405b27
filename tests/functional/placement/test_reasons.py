"""Why hosts have no candidate, held against a real Placement constraint by constraint.

``CPU_TIERS_CLOUDS=0-499 pytest -s`` compares 500 random clouds and shows what was compared.
"""

import itertools
import random
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.explanation import read_reasons
from cpu_tiers.tools.reasons.host_reason import ClaimLimit, HostReason
from cpu_tiers.tools.reasons.reasons import ANCHOR as NO_ANCHOR
from cpu_tiers.tools.reasons.reasons import Reasons
from cpu_tiers.translators import fallback, translate
from cpu_tiers.translators.constraints import constraints, without
from cpu_tiers.translators.numa import cheaper
from tests import made_once
from tests.draws import clouds, repeatable
from tests.random_clouds.drawing import draw_hosts, draw_server
from tests.random_clouds.providers import CARD, NAMES, Providers, placement_rows
from tests.random_clouds.queries import request_of
from tests.random_clouds.states import CLASSES, TRAITS, draw_query, draw_state, write_state

ANCHOR = "CUSTOM_ANCHOR"
"""A class that each host has: a candidate of shared providers only would not tell its host."""

MOST_SUBSETS = 60


@pytest.fixture
def named(embedded: PlacementClient) -> PlacementClient:
    """Create the names of all clouds."""
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    classes = [CLASSES[-1], CARD, ANCHOR, NUMA_SERVER]
    embedded.ensure_names(classes, [*custom, *NAMES, "CUSTOM_GREEN"])
    return embedded


def test_a_constraint_more_that_excludes_a_host_again(named: PlacementClient) -> None:
    """A group is left out with its class, and with the group the provider that had a trait."""
    assert check_any_cloud(named, random.Random("20261126 190"))["several"]


def test_the_reasons_are_equal_to_the_reasons_of_placement(named: PlacementClient) -> None:
    empty = made_once.copy_of_placement()
    counts: Counter[str] = Counter()
    for number in clouds(50):
        made_once.copy_to_placement(empty)
        with repeatable(number) as seed:
            rng = random.Random(seed)
            check = check_any_cloud if number % 3 else check_nodes
            counts += check(named, rng)
    print(f"\n{dict(counts)}")  # noqa: T201  # for the runs of many clouds, with -s
    for kind in ("alone", "several"):
        assert counts[kind], kind  # or there was nothing to compare
    assert counts["max_unit"] + counts["step_size"] + counts["min_unit"]


def check_any_cloud(client: PlacementClient, rng: random.Random) -> Counter[str]:
    """Compare hosts, flat and nested, with pools, limits of a claim and aggregates."""
    states = []
    for state in draw_state(rng):
        if state.parent is None and not state.name.startswith("pool"):
            anchor = {ANCHOR: Inventory(total=9, max_unit=9)}
            state = replace(state, inventories={**state.inventories, **anchor})
        states.append(state)
    write_state(states)
    roots = [state.uuid for state in states if ANCHOR in state.inventories]
    counts: Counter[str] = Counter()
    for _ in range(2):
        query = anchored(draw_query(rng, states))
        counts += Cloud(client, [query], roots).check(states)
    return counts


def anchored(query: CandidateQuery) -> CandidateQuery:
    """Return the query with an anchor in the unsuffixed group."""
    unsuffixed = next((g for g in query.groups if not g.suffix), RequestGroup())
    others = tuple(group for group in query.groups if group.suffix)
    unsuffixed = unsuffixed._replace(resources={**unsuffixed.resources, ANCHOR: 1}, in_tree=None)
    return query._replace(groups=(unsuffixed, *others))


def check_nodes(client: PlacementClient, rng: random.Random) -> Counter[str]:
    """Compare hosts with NUMA nodes, pages and devices, some with limits of a claim."""
    hosts = draw_hosts(rng, "cn")
    Providers(hosts)
    with placement_rows() as rows:
        for row, (limit,) in enumerate(rows.execute("SELECT total FROM inventories").fetchall()):
            if rng.random() < 0.2:
                column, value = rng.choice([("max_unit", max(limit // 2, 1)), ("step_size", 3)])
                rows.execute(
                    f"UPDATE inventories SET {column} = ?"  # noqa: S608  # our own two names
                    " WHERE id = (SELECT id FROM inventories LIMIT 1 OFFSET ?)",
                    (value, row),
                )
    request = request_of(draw_server(rng, hosts))
    queries = [query for query in (translate(request), fallback(request)) if query]
    return Cloud(client, queries, [host.uuid for host in hosts]).check()


@dataclass
class Cloud:
    """The cloud of a Placement, and the queries for a server."""

    client: PlacementClient
    queries: Sequence[CandidateQuery]
    roots: Sequence[str]

    def check(self, states: Sequence[CloudProvider] = ()) -> Counter[str]:
        """Compare the reasons of all hosts without candidates."""
        relaxations = constraints(self.queries)
        names = [name for name in relaxations if name != ANCHOR]
        single = {name: self.served([name]) for name in names}
        served = self.served([])
        full = [root for root in self.roots if root not in served]
        reasons = self.reasons()
        counts = Counter(hosts=len(self.roots), full=len(full))
        for root in full:
            if reasons.lacks_anchor(root):  # its nova-compute starts again, whatever else it lacks
                assert reasons.of(root).lacks == {NO_ANCHOR: 1}
                continue
            alone = [name for name in names if root in single[name]]
            assert [n for n in reasons.alone(root) if n != ANCHOR] == alone, self.text(root)
            reason = reasons.of(root)
            counts += self.check_host(root, reasons, alone, names)
            counts += self.check_amount(root, reason, states)
        assert all(not reasons.of(root).lacks for root in served & set(self.roots))
        return counts

    def check_host(
        self, root: str, reasons: Reasons, alone: list[str], names: list[str]
    ) -> Counter[str]:
        """Check that the set of constraints suffices, and that no smaller set does."""
        reason = reasons.of(root)
        assert root in self.served(reason.lacks), self.text(root)
        lacking = [name for name in alone if not reasons.is_enough(root, name, ())]
        if lacking:
            assert len(reason.lacks) == 1
            assert {*reason.lacks, *reason.instead} - {ANCHOR} == set(lacking), self.text(root)
            return Counter(alone=1, constraints=len(names))
        smaller = [
            chosen
            for size in range(1, len(reason.lacks))
            for chosen in itertools.combinations(names, size)
        ]
        for chosen in smaller if len(smaller) <= MOST_SUBSETS else ():
            if root in self.served(chosen):  # only because a group is left out with its class
                left_out = [n for n in chosen if reasons.is_enough(root, n, {*chosen} - {n})]
                assert left_out, (self.text(root), chosen, reason)
        return Counter(several=1, subsets=len(smaller))

    def check_amount(
        self, root: str, reason: HostReason, states: Sequence[CloudProvider]
    ) -> Counter[str]:
        """Check the limits, and what happens if a missing amount becomes free, or one less."""
        counts: Counter[str] = Counter()
        for name, lack in reason.lacks.items():
            if isinstance(lack, ClaimLimit):
                self.check_limit(name, lack)
                counts[lack.limit] += 1
                continue
            own = [s for s in states if name in s.inventories and s.uuid == root]
            owners = [s for s in states if name in s.inventories and self.may_serve(s, own)]
            groups = [group for group in self.queries[0].groups if name in group.resources]
            if not len(own) == len(owners) == len(groups) == 1:
                continue
            if own[0].inventories[name].allocation_ratio != 1.0:
                continue
            if lack == groups[0].resources[name]:
                continue  # no amount would help, such as of a class beside another one
            others = reason.lacks.keys() - {name}
            for more, is_enough in ((lack, True), (lack - 1, False)):
                with self.more(own[0].name, name, more):
                    assert (root in self.served(others)) == is_enough, self.text(root)
            counts["amounts"] += 1
        return counts

    @staticmethod
    def may_serve(state: CloudProvider, host: Sequence[CloudProvider]) -> bool:
        """Tell whether a provider is of a host or a pool, by its name."""
        of_host = any(state.name.startswith(each.name) for each in host)
        return of_host or state.name.startswith("pool")

    def check_limit(self, name: str, lack: ClaimLimit) -> None:
        """Check that a provider has the limit, and that it refuses the amount."""
        with placement_rows() as rows:
            values = rows.execute(
                f"SELECT i.{lack.limit} FROM inventories i"  # noqa: S608  # one of three columns
                " JOIN resource_classes c ON c.id = i.resource_class_id WHERE c.name = ?",
                (name,),
            ).fetchall()
        assert (lack.value,) in values
        refuses = {
            "max_unit": lack.asked > lack.value,
            "min_unit": lack.asked < lack.value,
            "step_size": lack.asked % lack.value != 0,
        }
        assert refuses[lack.limit]

    @contextmanager
    def more(self, provider: str, name: str, amount: int) -> Iterator[None]:
        """Make an inventory larger for some time."""
        for sign in (1, -1):
            with placement_rows() as rows:
                rows.execute(
                    "UPDATE inventories SET total = total + ? WHERE resource_provider_id ="
                    " (SELECT id FROM resource_providers WHERE name = ?) AND resource_class_id ="
                    " (SELECT id FROM resource_classes WHERE name = ?)",
                    (sign * amount, provider, name),
                )
            if sign == 1:
                yield

    def reasons(self) -> Reasons:
        survey = CandidateSurvey(self.client, self.queries)
        return read_reasons(self.client, survey, [self.queries], self.roots)[0]

    def served(self, ignored: Collection[str]) -> frozenset[str]:
        """Return the hosts of which Placement has candidates if constraints are left out."""
        relaxations = constraints(self.queries)
        found = set()
        for query in without(self.queries, [relaxations[name] for name in ignored]):
            if not any(group.resources for group in query.groups):
                found |= set(self.roots)  # nothing is requested, and Placement refuses it
                continue
            answer = self.client.candidates(cheaper(query))
            for request in answer.allocation_requests:
                nodes = [u for s, u in request.mappings.items() if s.startswith("_PROC")]
                if len({tuple(uuids) for uuids in nodes}) == len(nodes):
                    found |= {
                        answer.provider_summaries[uuid]["root_provider_uuid"]
                        for uuid in request.allocations
                    }
        return frozenset(found)

    def text(self, root: str) -> str:
        return f"{root}: {' or '.join(query.to_query_string() for query in self.queries)}"
