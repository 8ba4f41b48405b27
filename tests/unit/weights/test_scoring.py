"""The two scores, one class and one set of traits at a time."""

import pytest

from cpu_tiers.weights import (
    BEST_FIT,
    BORING,
    FRAGMENTATION,
    LITERAL,
    REQUESTED_TO_CAPACITY,
    SCORINGS,
    MeanScoring,
)

HUGE = 10**400  # a float ends near 10**308


def test_the_names_of_nova_conf() -> None:
    assert {
        "literal": LITERAL,
        "boring": BORING,
        "requested-to-capacity": SCORINGS[REQUESTED_TO_CAPACITY],
        "best-fit": BEST_FIT,
        "fragmentation": FRAGMENTATION,
    } == SCORINGS


@pytest.mark.parametrize(
    ("requested", "free", "literal", "boring"),
    [
        pytest.param(2, 4, 0.5, 0.5, id="the spec's HostA: 1 - 2/4"),
        pytest.param(1, 10, 0.9, 0.9, id="much is left: 1 - 1/10"),
        pytest.param(4, 4, 0.0, 0.0, id="the server takes the rest: 1 - 4/4"),
        pytest.param(5, 4, 0.0, 0.0, id="more than there is: 0, not 1 - 5/4"),
        pytest.param(2, 0, 0.0, 0.0, id="nothing free: no division by 0"),
        pytest.param(2, -4, 0.0, 0.0, id="overcommitted: 0, not 1 - 2/-4 = 1.5"),
        pytest.param(0, 4, 1.0, 0.0, id="not asked for: 1 - 0/4, or 0 where boring"),
        pytest.param(0, 0, 0.0, 0.0, id="not asked for and nothing free"),
        pytest.param(0, -4, 0.0, 0.0, id="not asked for and overcommitted"),
        pytest.param(HUGE, 4 * HUGE, 0.75, 0.75, id="beyond float: 1 - 1/4"),
        pytest.param(1, HUGE, 1.0, 1.0, id="beyond float: 1 - 1/10**400 rounds to 1"),
        pytest.param(HUGE, 1, 0.0, 0.0, id="more than there is, beyond float"),
    ],
)
def test_resource_part(requested: int, free: int, literal: float, boring: float) -> None:
    amounts = {"VCPU": requested} if requested else {}
    assert LITERAL.resource_parts(amounts, {"VCPU": free}) == [literal]
    assert BORING.resource_parts(amounts, {"VCPU": free}) == [boring]


@pytest.mark.parametrize("scoring", [LITERAL, BORING], ids=["literal", "boring"])
def test_a_class_the_tree_lacks_is_not_counted(scoring: MeanScoring) -> None:
    assert scoring.resource_parts({"DISK_GB": 20, "VCPU": 2}, {"VCPU": 4}) == [0.5]


@pytest.mark.parametrize(
    ("requested", "matched", "available", "literal", "boring"),
    [
        pytest.param(1, 1, 2, 0.5, 0.5, id="the spec's HostA: 1/2"),
        pytest.param(3, 3, 4, 0.75, 0.75, id="one extra: 3/4"),
        pytest.param(2, 2, 2, 1.0, 1.0, id="no extra: 2/2"),
        pytest.param(2, 1, 4, 0.25, 0.25, id="one of two: 1/4, or 1/(1+3)"),
        pytest.param(0, 0, 0, 0.0, 1.0, id="no traits at all: 0, or 1/(1+0)"),
        pytest.param(0, 0, 1, 0.0, 0.5, id="none asked for, 1 extra: 0/1, or 1/(1+1)"),
        pytest.param(0, 0, 3, 0.0, 0.25, id="none asked for, 3 extra: 0/3, or 1/(1+3)"),
        pytest.param(1, 0, 3, 0.0, 0.0, id="asked for and absent: 0/3, and 0"),
        pytest.param(1, 0, 0, 0.0, 0.0, id="asked for, and the host has none"),
    ],
)
def test_trait_score(
    requested: int, matched: int, available: int, literal: float, boring: float
) -> None:
    assert LITERAL.trait_score(requested, matched, available) == literal
    assert BORING.trait_score(requested, matched, available) == boring
