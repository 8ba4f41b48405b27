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


def test_where_there_is_room_no_server_stays(plan: Run) -> None:
    """Nobody asks for the servers, of which these are powered off; else they stay."""
    given = cloud(state="SHUTOFF")
    there = json.loads(plan(given, "room", "small", "-f", "json"))
    assert (there["room"], there["moves"], there["stay"]) == ({"before": 2, "after": 2}, [], [])
    lacking = json.loads(plan(given, "room", "small", "--count", "3", "-f", "json", status=3))
    assert {row["server"] for row in lacking["stay"]} == {"id-0", "id-1"}
    excluded = plan(given, "room", "small", "--exclude", "web0", "-f", "json")
    assert len(json.loads(excluded)["stay"]) == 2


def test_a_cloud_without_servers(plan: Run) -> None:
    empty = cloud() | {"consumers": {}, "servers": {}}
    for count in ("1", "4", "most"):
        words = plan(empty, "room", "small", "--count", count)
        assert words.startswith("There is room for 4 servers of flavor small now")


def test_room_for_a_server_from_a_volume(plan: Run) -> None:
    """No host has a disk of 9,999 GiB, which only a server without a volume asks for."""
    given: Any = cloud()
    for flavor in given["flavors"]:
        flavor["root_gb"] = 9_999
    words = plan(given, "room", "small", status=3)
    assert "no host could hold such a server" in " ".join(words.split())
    words = plan(given, "room", "small", "--from-volume")
    assert words.startswith("There is room for 2 servers of flavor small now")


def test_room_on_the_hosts_of_an_aggregate(plan: Run) -> None:
    """The filter lets the new server go to cn1 only, and the servers may go to both hosts."""
    given: Any = cloud()
    given["host_aggregates"] = {
        "1": {"name": "both", "zone": "az", "hosts": ["cn0", "cn1"]},
        "2": {"name": "fast", "hosts": ["cn1"], "metadata": {"ssd": "true"}},
    }
    for server in given["servers"].values():
        server["zone"] = "az"
    for flavor in given["flavors"]:
        flavor["extra_specs"] = {"aggregate_instance_extra_specs:ssd": "true"}
    filters = "enabled_filters = AggregateInstanceExtraSpecsFilter"
    answer = json.loads(plan(given, "room", "large", "-f", "json", conf=filters))
    assert [(move["from"], move["to"]) for move in answer["moves"]] == [("cn1", "cn0")]
