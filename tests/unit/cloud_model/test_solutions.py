"""Several request groups at once, on a cloud whose candidates are worked out by hand."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model import SimulatedCloud
from tests.unit.cloud_model.clouds import CARDS, group, provider, providers_of, query


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(
            query(group("1", CARD=2), group("2", CARD=1)),
            # 2 + 1 fit into the 3 of c1, but not into the 2 of c2
            [
                {"1": "host-c1", "2": "host-c1"},
                {"1": "host-c1", "2": "host-c2"},
                {"1": "host-c2", "2": "host-c1"},
            ],
            id="amounts of groups add up on a provider",
        ),
        pytest.param(
            query(group("1", CARD=2), group("2", CARD=1), policy="isolate"),
            [{"1": "host-c1", "2": "host-c2"}, {"1": "host-c2", "2": "host-c1"}],
            id="isolate: a provider for each group",
        ),
        pytest.param(
            query(group(CARD=1), group("1", CARD=2), policy="isolate"),
            [
                {"": "host-c1", "1": "host-c1"},
                {"": "host-c1", "1": "host-c2"},
                {"": "host-c2", "1": "host-c1"},
            ],
            id="isolate does not concern the unsuffixed group",
        ),
        pytest.param(
            query(group("1", CARD=1), group("2", VCPU=1), same_subtree=(("1", "2"),)),
            [{"1": "host-c1", "2": "host"}, {"1": "host-c2", "2": "host"}],
            id="same_subtree: the root is above the cards",
        ),
        pytest.param(
            query(group("1", CARD=1), group("2", "FAST"), same_subtree=(("1", "2"),)),
            [{"1": "host-c2", "2": "host-c2"}],
            id="same_subtree: no card is above the other card",
        ),
        pytest.param(
            query(group(VCPU=1), root_required=frozenset(["FAST"])), [], id="root_required"
        ),
        pytest.param(
            query(group(VCPU=8), root_forbidden=frozenset(["FAST"])),
            [{"": "host"}, {"": "plain"}],
            id="root_forbidden: a card may have the trait",
        ),
    ],
)
def test_groups(asked: CandidateQuery, expected: list[Mapping[str, str]]) -> None:
    assert providers_of(SimulatedCloud(CARDS).candidates(asked)) == expected


def test_the_merged_amount_obeys_the_largest_unit() -> None:
    """Two groups take 1 each and at most 2 may be taken at once, though 4 are free."""
    card = replace(provider("c"), inventories={"CARD": Inventory(total=4, max_unit=2)})
    cloud = SimulatedCloud([card])
    for count, ways in ((2, 1), (3, 0)):
        asked = query(*(group(str(n), CARD=1) for n in range(count)))
        assert len(providers_of(cloud.candidates(asked))) == ways


def test_equal_groups_in_a_single_order() -> None:
    cloud = SimulatedCloud(
        [provider("a", None, VCPU=1), *(provider(f"c{n}", "a", CARD=1) for n in "123")]
    )
    two = query(group("1", CARD=1), group("2", CARD=1), policy="isolate")
    # 2 of 3 cards: 3 ways to choose them, each in 2 orders
    for each_order, ways in ((True, 6), (False, 3)):
        search = cloud.search(two, each_order=each_order)
        search.refresh()
        assert len(search.requests("a")) == ways
    # Groups in a subtree are not interchangeable. A card has room for one of them, and no card
    # is above another card.
    search = cloud.search(two._replace(same_subtree=(("1", "2"),)), each_order=False)
    search.refresh()
    assert search.requests("a") == ()
