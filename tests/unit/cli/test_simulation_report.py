"""The row of a policy: means of several seeds, and their texts."""

from cpu_tiers.cli.simulation_report import COLUMNS, row
from cpu_tiers.simulation.floors import TierFloors
from cpu_tiers.simulation.run import Outcome
from cpu_tiers.simulation.scheduler import Demand


def outcome(taken: dict[str, int], refused: dict[str, int], first: int | None) -> Outcome:
    return Outcome(
        taken=taken,
        refused=refused,
        first_refused=None if first is None else (first, 0.0),
        free={"VCPU": 4},
        stranded={"VCPU": 1},
        whole_hosts=2,
        floors={
            "100": TierFloors(
                servers=4, floor_kept=first or 4, fair_kept=4, least_floor=0.8, least_fair=1.0
            )
        },
    )


DEMANDS = {
    name: Demand(flavor=name, queries=(), tier=tier)
    for name, tier in {"a": "100", "b": "100", "c": "", "d": "", "e": "", "f": ""}.items()
}


def test_texts_of_a_row() -> None:
    outcomes = [
        outcome({"a": 3, "b": 1, "c": 1, "d": 5, "e": 5, "f": 5}, {"c": 1}, 2),
        outcome({"a": 1, "b": 1, "c": 0, "d": 5, "e": 5, "f": 5}, {"a": 2, "b": 0, "c": 2}, None),
    ]
    texts = {
        column: value.human_readable() if hasattr(value, "human_readable") else value
        for column, value in zip(COLUMNS, row("nova", outcomes, DEMANDS), strict=True)
    }
    assert texts == {
        "policy": "nova",
        "taken": "18 (17-20)",  # 20 and 17
        "refused": "2 (1-4)",
        "first_refused": "2",
        "whole_hosts": "2",
        # a and b: 6 of 8; c to f: 31 of 34
        "tiers": "100: 75.0 %\nnone: 91.2 %",
        "floors": "100: 75 % (least 0.80)",  # 2 and 4 of 4
        "flavors": "c: 25.0 %\na: 66.7 %",
        "stranded": "VCPU: 25 %",
    }


def test_no_server_was_refused() -> None:
    values = dict(zip(COLUMNS, row("nova", [outcome({"a": 1}, {}, None)], DEMANDS), strict=True))
    assert values["first_refused"] is None
