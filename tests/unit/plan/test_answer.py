"""The answer of a plan in words, as data and as a script."""

from typing import Any

from cpu_tiers.tools.plan.answer import moves_data, moves_text, stays_text
from cpu_tiers.tools.plan.hosts import Migration
from cpu_tiers.tools.plan.order import PlanStep
from cpu_tiers.tools.plan.planner import Plan
from cpu_tiers.tools.plan.script import script
from tests.unit.plan.clouds import equal_hosts, hosts_of, server

STEP = PlanStep(Migration(server("id", "h0", VCPU=1), "h1", ((("h1", "VCPU"), 1),)))
NONE = Plan(hosts_of(equal_hosts(2, VCPU=8), [], services={"h1": "compute1"}))
ONE = NONE._replace(steps=(STEP,))
ROW: dict[str, Any] = {"name": "web", "from": "h0", "to": "h1", "after": [1, 2]}
MOVE: dict[str, Any] = {
    **ROW,
    "server": "id",
    "source": "h0",
    "host": "h1",
    "after": [],
    "live": True,
    "named": True,
    "settles": False,
    "memory_mb": 4096,
    "disk_gb": 0,
}


def test_the_table_fits() -> None:
    assert moves_text([ROW], 80).splitlines()[-1] == "1  web     h0    h1  1, 2"
    # 80 - 4 x 2 - 1 - 4 - 2 - 5: 60 columns are left for the name, 20 of them for its end
    long = {**ROW, "name": f"{'w' * 60}{'x' * 10}", "after": []}
    assert (
        moves_text([long], 80).splitlines()[-1]
        == f"1  {'w' * 39}…{'w' * 10}{'x' * 10}  h0    h1  -"
    )
    assert max(map(len, moves_text([long], 80).splitlines())) <= 80
    narrow = moves_text([{**ROW, "name": "w" * 70}], 20).splitlines()
    assert narrow == [f"1. {'w' * 70}", "   from h0", "   to h1", "   after 1, 2"]
    assert moves_text([], 80) == ""


def test_a_tenant_writes_no_lines() -> None:
    assert "\n" not in moves_text([{**ROW, "name": "a\nb"}], 80).splitlines()[-1]
    moves = [{**MOVE, "server": "x; reboot", "host": "$(halt)"}]
    lines = script("words\nrm -rf /", moves, ["-`id`"], rate=100).splitlines()
    assert lines[1] == "# words\\nrm -rf /"
    # 300 seconds and twice those of 4096 MiB at 100 MiB/s: 300 + 81.92
    assert lines[-3:] == [
        "disable '-`id`'",
        "step 1 '' live 'x; reboot' h0 '$(halt)' 382 0",
        "finish",
    ]


def test_a_step_knows_the_later_hosts_of_its_server() -> None:
    moves = [MOVE, {**MOVE, "server": "b"}, {**MOVE, "host": "h2", "after": [1, 2]}]
    lines = script("", moves, rate=4096, parallel=3).splitlines()
    assert "parallel=3" in lines
    assert lines[-4:-1] == [
        "step 1 '' live id h0 h1 302 0 h2",
        "step 2 '' live b h0 h1 302 0",
        "step 3 '1 2' live id h0 h2 302 0",
    ]


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
            "settles": False,
            "live": True,
            "named": True,
            "source": "h0",
            "host": "compute1",
            "memory_mb": 0,
            "disk_gb": 0,
        }
    ]
