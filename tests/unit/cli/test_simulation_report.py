"""The row of a policy: means of several seeds."""

from collections.abc import Mapping
from typing import Any

from cpu_tiers.tools.cloud.simulation_text import policy_values
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.comparison import compare
from cpu_tiers.tools.simulation.run import Demand, Outcome
from cpu_tiers.tools.sold.entitlements import TierFloors


def outcome(
    taken: dict[str, int], refused: dict[str, int], first: int | None, **others: Any
) -> Outcome:
    return Outcome(
        taken=taken,
        refused=refused,
        first_refused=None if first is None else (first, 0.0),
        free={"VCPU": 4},
        stranded={"VCPU": 1},
        whole_hosts=2,
        floors={
            "gold": TierFloors(
                servers=4,
                floor_kept=first or 4,
                entitlement_kept=4,
                least_floor=0.8,
                least_entitlement=1.0,
            )
        },
        **others,
    )


DEMANDS = {
    name: Demand(Request(), tier=tier)
    for name, tier in {"a": "gold", "b": "gold", "c": ""}.items()
}


def values_of(*outcomes: Outcome) -> Mapping[str, Any]:
    """Return the values of the policy nova, as JSON has them."""
    return policy_values("nova", outcomes, DEMANDS, compare({"nova": outcomes}))


def test_the_values_of_a_row() -> None:
    assert values_of(
        outcome({"a": 3, "b": 1}, {"c": 1}, 2, refused_core_hours=0.25, empty_hosts=1.0),
        outcome(
            {"a": 1, "b": 1, "c": 1}, {"a": 2}, None, refused_core_hours=0.75, empty_hosts=2.0
        ),
    ) == {
        "policy": "nova",
        "taken": {"mean": 3.5, "least": 3, "most": 4},
        "refused": {"mean": 1.5, "least": 1, "most": 2},
        "refused_core_hours": {"mean": 0.5, "least": 0.25, "most": 0.75},
        "behind_best": {"mean": 0, "least": 0, "most": 0},
        "first_refused": {"mean": 2, "least": 2, "most": 2},  # of the first seed only
        "empty_hosts": {"mean": 1.5, "least": 1, "most": 2},
        "whole_hosts": {"mean": 2, "least": 2, "most": 2},
        "tiers": {
            "gold": {"taken": 3, "refused": 1},  # 4 and 2 servers, 0 and 2
            "no tier": {"taken": 0.5, "refused": 0.5},
        },
        "floors": {
            "gold": {
                "servers": 4,
                "floor_kept": 3,  # 2 and 4
                "entitlement_kept": 4,
                "least_floor": 0.8,
                "least_entitlement": 1.0,
            }
        },
        "flavors": {
            "a": {"taken": 2, "refused": 1},
            "b": {"taken": 1, "refused": 0},
            "c": {"taken": 0.5, "refused": 0.5},
        },
        "stranded": {"VCPU": {"free": 4, "stranded": 1}},
    }


def test_no_server_was_refused_and_none_has_a_lifetime() -> None:
    values = values_of(outcome({"a": 1}, {}, None))
    assert values["first_refused"] is None
    assert values["refused_core_hours"] is None
