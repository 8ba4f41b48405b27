"""Which policy is the best, and what the verdict says of it."""

from collections.abc import Sequence

import pytest

from cpu_tiers.tools.simulation.comparison import CORE_HOURS, SERVERS, Spread, compare, verdict
from cpu_tiers.tools.simulation.run import Outcome


def outcome(refused: int, core_hours: float | None = None) -> Outcome:
    """Return the outcome of 100 requests."""
    return Outcome(
        taken={"a": 100 - refused},
        refused={"a": refused},
        first_refused=None,
        free={},
        stranded={},
        whole_hosts=0,
        refused_core_hours=core_hours,
    )


def of_servers(**refused: Sequence[int]) -> dict[str, list[Outcome]]:
    return {policy: [outcome(number) for number in numbers] for policy, numbers in refused.items()}


def test_the_comparison_is_seed_by_seed() -> None:
    comparison = compare(of_servers(nova=[10, 50], boring=[8, 49], literal=[9, 52]))
    assert (comparison.measure, comparison.seeds, comparison.best) == (SERVERS, 2, "boring")
    # 2 servers of 100 with the first seed, 1 with the second
    assert comparison.behind["nova"] == pytest.approx(Spread(0.015, 0.01, 0.02))
    assert comparison.behind["boring"] == Spread(0, 0, 0)
    assert comparison.refused["nova"] == pytest.approx(Spread(0.3, 0.1, 0.5))


def test_with_lifetimes_the_refused_core_hours_decide() -> None:
    results = {"nova": [outcome(1, 0.5)], "boring": [outcome(2, 0.4)]}
    assert (compare(results).measure, compare(results).best) == (CORE_HOURS, "boring")
    _, counts = verdict(results)
    assert counts == "nova refuses the smallest number of servers: 1.0 % of the servers."


FIVE = [10, 20, 30, 40, 50]  # the mean is 30
MORE = [11, 22, 33, 44, 55]  # 1 to 5 more, 3 on average
LESS = [9, 22, 33, 44, 55]  # -1 to 5 more, 2.6 on average
NONE = "No request has a lifetime, so servers are compared, and no core-hours."


@pytest.mark.parametrize(
    ("results", "texts"),
    [
        pytest.param(
            of_servers(nova=MORE, boring=FIVE),
            [
                "boring is the best: it refuses 30.0 % of the servers, on average of 5 seeds,"
                " 3.0 percentage points less than nova, the next (1.0 to 5.0 by seed). That is"
                " more than the spread of the seeds."
            ],
            id="more than the spread",
        ),
        pytest.param(
            of_servers(nova=LESS, boring=FIVE),
            [
                "No policy is clearly the best. boring refuses 30.0 % of the servers, on average"
                " of 5 seeds, 2.6 percentage points less than nova, the next (-1.0 to 5.0 by"
                " seed). That is not more than the spread of the seeds."
            ],
            id="not with each seed",
        ),
        pytest.param(
            of_servers(nova=MORE, literal=LESS, boring=FIVE),
            [
                "No policy is clearly the best. boring refuses 30.0 % of the servers, on average"
                " of 5 seeds, 2.6 percentage points less than literal, the next (-1.0 to 5.0 by"
                " seed). That is not more than the spread of the seeds.",
                "Refuse more than boring, with each seed: nova (3.0 percentage points more).",
            ],
            id="two of three are apart",
        ),
        pytest.param(
            of_servers(nova=[3], boring=[1]),
            [
                "No policy is clearly the best. boring refuses 1.0 % of the servers, 2.0"
                " percentage points less than nova, the next. One seed does not show the spread;"
                " give --seeds 5 or more."
            ],
            id="one seed",
        ),
        pytest.param(
            of_servers(nova=FIVE, boring=FIVE),
            ["All policies refuse the same: 30.0 % of the servers, on average of 5 seeds."],
            id="equal",
        ),
        pytest.param(
            of_servers(nova=[0], boring=[0]),
            ["No policy refuses a server, so the requests do not tell the policies apart."],
            id="nothing refused",
        ),
        pytest.param(
            of_servers(nova=[4]), ["nova refuses 4.0 % of the servers."], id="a single policy"
        ),
    ],
)
def test_the_verdict(results: dict[str, list[Outcome]], texts: list[str]) -> None:
    assert verdict(results) == [*texts, NONE]


def test_the_seeds_of_a_table_choose_only_among_equal_hosts() -> None:
    assert verdict(of_servers(nova=FIVE), has_same_requests=True)[-1].startswith("The seeds only")
    assert verdict(of_servers(nova=[1]), has_same_requests=True)[-1] == NONE
