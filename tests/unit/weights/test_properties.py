"""What holds for every forest, whatever is in it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.weights import BORING, LITERAL, Scoring, make_forest
from tests.draws import drawn

UNHURRIED = drawn(200)

CLASSES = st.sampled_from(["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU"])
TRAITS = st.frozensets(st.sampled_from("ABCDEF"))
AMOUNTS = st.integers(0, 20) | st.integers(0, 10**400)
REQUESTED = st.dictionaries(CLASSES, AMOUNTS.filter(bool))
SCORING = st.sampled_from([LITERAL, BORING])
OPTIONS = st.fixed_dictionaries(
    {"only_resources": st.frozensets(CLASSES, max_size=3), "only_traits": TRAITS}
)
SUMMARIES = st.dictionaries(
    st.text("0123456789", min_size=1, max_size=3),
    st.fixed_dictionaries(
        {
            "resources": st.dictionaries(
                CLASSES, st.fixed_dictionaries({"capacity": AMOUNTS, "used": AMOUNTS})
            ),
            "traits": TRAITS.map(sorted),
            "root_provider_uuid": st.sampled_from(["r", "s"]),
        }
    ),
    min_size=1,
)


@UNHURRIED
@given(SUMMARIES, REQUESTED, TRAITS, SCORING, OPTIONS)
def test_a_score_is_the_sum_of_the_explanation(
    summaries: Any,
    requested: dict[str, int],
    required: frozenset[str],
    scoring: Scoring,
    options: Any,
) -> None:
    forest = make_forest(summaries, requested, required, scoring=scoring, **options)
    for root, score in forest.scores().items():
        host = forest.explain(root)
        assert host.score == score == (host.resource_score + host.trait_score) / 2
        assert host.resource_score == mean(host.resources)
        if scoring is LITERAL or (scoring is BORING and 1.0 in host.traits.values()):
            assert host.trait_score == mean(host.traits)


def mean(parts: Any) -> float:
    return sum(parts.values()) / len(parts) if parts else 0.0


@UNHURRIED
@given(SUMMARIES, REQUESTED, TRAITS, SCORING, OPTIONS)
def test_everything_is_from_0_to_1(
    summaries: Any,
    requested: dict[str, int],
    required: frozenset[str],
    scoring: Scoring,
    options: Any,
) -> None:
    forest = make_forest(summaries, requested, required, scoring=scoring, **options)
    for root in forest.scores():
        host = forest.explain(root)
        numbers = [host.score, host.resource_score, host.trait_score]
        assert all(
            0.0 <= number <= 1.0
            for number in (*numbers, *host.resources.values(), *host.traits.values())
        )


@UNHURRIED
@given(SUMMARIES, REQUESTED, TRAITS, st.integers(-5, 20))
def test_boring_a_class_that_is_not_asked_for_never_raises_the_score(
    summaries: Any, requested: dict[str, int], required: frozenset[str], free: int
) -> None:
    before = make_forest(summaries, requested, required, scoring=BORING).scores()
    for summary in summaries.values():
        summary["resources"]["FPGA"] = {"capacity": free, "used": 0}
    after = make_forest(summaries, requested, required, scoring=BORING).scores()
    assert all(after[root] <= before[root] for root in before)


@UNHURRIED
@given(SUMMARIES, REQUESTED, TRAITS)
def test_boring_a_trait_that_is_not_asked_for_lowers_the_score(
    summaries: Any, requested: dict[str, int], required: frozenset[str]
) -> None:
    before = make_forest(summaries, requested, required, scoring=BORING)
    before_scores = {root: before.explain(root).trait_score for root in before.scores()}
    for summary in summaries.values():
        summary["traits"].append("Z")
    after = make_forest(summaries, requested, required, scoring=BORING)
    for root, score in before_scores.items():
        assert after.explain(root).trait_score < score or score == 0.0


@UNHURRIED
@given(SUMMARIES, REQUESTED, TRAITS, SCORING, REQUESTED)
def test_a_claim_never_raises_a_score_and_edits_nothing(
    summaries: Any,
    requested: dict[str, int],
    required: frozenset[str],
    scoring: Scoring,
    claimed: dict[str, int],
) -> None:
    original = copy.deepcopy(summaries)
    forest = make_forest(summaries, requested, required, scoring=scoring)
    before = forest.scores()
    for root in before:
        forest.claim(root, claimed)
    after = forest.scores()
    assert all(after[root] <= before[root] for root in before)
    assert summaries == original


@UNHURRIED
@given(SUMMARIES, REQUESTED, TRAITS, SCORING, OPTIONS)
def test_the_order_of_the_providers_does_not_matter(
    summaries: Any,
    requested: dict[str, int],
    required: frozenset[str],
    scoring: Scoring,
    options: Any,
) -> None:
    backwards = dict(reversed(summaries.items()))
    one = make_forest(summaries, requested, required, scoring=scoring, **options).scores()
    other = make_forest(backwards, requested, required, scoring=scoring, **options).scores()
    assert other == pytest.approx(one)
