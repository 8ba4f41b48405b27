"""The answer of a plan in words and as a script."""

from typing import Any

import pytest

from cpu_tiers.tools.plan.answer import moves_data, moves_text, proof_text, script, stays_text
from cpu_tiers.tools.plan.hosts import Migration
from cpu_tiers.tools.plan.order import PlanStep
from cpu_tiers.tools.plan.planner import Plan
from tests.unit.plan.clouds import equal_hosts, hosts_of, server

STEP = PlanStep(Migration(server("id", "h0", VCPU=1), "h1", ((("h1", "VCPU"), 1),)))
NONE = Plan(hosts_of(equal_hosts(2, VCPU=8), [], services={"h1": "compute1"}))
ONE = NONE._replace(steps=(STEP,))
ROW: dict[str, Any] = {"name": "web", "from": "h0", "to": "h1", "after": [1, 2]}
MOVE: dict[str, Any] = {"server": "id", "host": "h1", "live": True}


@pytest.mark.parametrize(
    ("plan", "is_most", "text"),
    [
        (ONE._replace(is_proven=True), False, "Proven: no plan has fewer moves."),
        (ONE._replace(is_proven=True), True, "Proven: no plan makes more room."),
        (ONE._replace(bound=1), False, "Not proven: every plan has at least 1 move."),
        (NONE._replace(bound=7), True, "Not proven: no plan makes room for more than 7 in all."),
        (ONE, False, "Not proven: the plan is the best that the search found."),
        (NONE, False, ""),
    ],
)
def test_what_is_proven(plan: Plan, is_most: bool, text: str) -> None:  # a table
    assert proof_text(plan, is_most=is_most) == text


def test_the_table_fits() -> None:
    assert moves_text([ROW], 80).splitlines()[-1] == "1  web     h0    h1  1, 2"
    long = {**ROW, "name": "w" * 70, "after": []}
    assert moves_text([long], 80).splitlines() == [f"1. {'w' * 70}", "   from h0", "   to h1"]
    assert moves_text([], 80) == ""


def test_a_tenant_writes_no_lines() -> None:
    assert "\n" not in moves_text([{**ROW, "name": "a\nb"}], 80).splitlines()[-1]
    lines = script("words\nrm -rf /", [{**MOVE, "server": "x; reboot", "host": "$(halt)"}])
    assert lines.splitlines()[1] == "# words\\nrm -rf /"
    assert lines.splitlines()[-1].endswith("--host '$(halt)' --wait 'x; reboot'")


def test_what_stays_is_shortened() -> None:
    rows = [{"name": f"s{n}", "why": "locked"} for n in range(12)]
    assert stays_text(rows, "What stays:", show_all=False).splitlines() == [
        "What stays:",
        *(f"  s{n}: locked" for n in range(10)),
        "  and 2 more (--all shows them)",
    ]


def test_the_moves_as_data() -> None:
    assert moves_data(ONE) == [
        {
            "server": "id",
            "name": "id",
            "from": "h0",
            "to": "h1",
            "after": [],
            "live": True,
            "host": "compute1",
        }
    ]
