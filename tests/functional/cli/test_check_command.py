"""``cpu-tiers plan check``: what of a saved plan is done, on a snapshot."""

import json
from collections.abc import Callable
from typing import Any

from tests.functional.cli.planned_clouds import cloud

Run = Callable[..., Any]


def test_check(plan: Run, save: Run) -> None:
    path = save(json.loads(plan(cloud(hosts=3), "drain", "cn0", "-f", "json")), "plan.json")
    answer = json.loads(plan(cloud(hosts=3), "check", path, "-f", "json"))
    assert answer["verdict"] == (
        "0 of 1 migration are done, 1 still possible as planned. The rest holds."
    )
    assert answer["disable"] == ["cn0"]
    step = plan(cloud(hosts=3), "check", path, "-f", "shell").splitlines()[-2]
    assert step.startswith("step 1 '' live id-0 cn0 ")
    text = plan(cloud(hosts=3, state="ERROR"), "check", path, status=3)
    assert "web0: it is on cn0 in state ERROR" in text
    assert "Not proven" not in text


def test_what_is_no_plan(run: Run, save: Run) -> None:
    path = save(cloud(), "cloud.json")
    result = run("plan", "check", path, "--snapshot", path, status=1)
    assert "with the key moves" in result.stderr
    wrong = save({"moves": [{"server": 3, "from": "cn0", "to": "cn9"}]}, "plan.json")
    result = run("plan", "check", wrong, "--snapshot", path, status=1)
    assert "moves, 1, server: got 3" in result.stderr
    move = {"server": "id-0", "from": "cn0", "to": "cn1"}
    for key in move:  # none, and without a text
        for broken in ({name: move[name] for name in move if name != key}, {**move, key: ""}):
            wrong = save({"moves": [broken]}, "plan.json")
            error = run("plan", "check", wrong, "--snapshot", path, status=1).stderr
            assert f"plan.json, moves, 1, {key}: got ''; give the value of the plan" in error
            assert error.count("plan.json") == 1
