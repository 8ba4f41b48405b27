"""``cpu-tiers plan room`` on a snapshot."""

import json
from collections.abc import Callable
from typing import Any

from tests.functional.cli.planned_clouds import cloud

Run = Callable[..., Any]


def test_room(plan: Run) -> None:
    words = " ".join(plan(cloud(), "room", "large").split())
    assert words.startswith("1 migration makes room for 1 in place of 0 servers of flavor large")
    assert "Proven: no plan has fewer moves." in words
    answer = json.loads(plan(cloud(), "room", "large", "-f", "json"))
    assert answer["proven"] is True
    assert answer["room"] == {"before": 0, "after": 1}
    (move,) = answer["moves"]
    assert {move["from"], move["to"]} == {"cn0", "cn1"}
    assert move["after"] == []
    assert "There is room for 2 servers" in plan(cloud(), "room", "small")
