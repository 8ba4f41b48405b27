"""What is proven of a plan, and the words where something was not read."""

from dataclasses import replace

import pytest

from cpu_tiers.tools.plan.hosts import Migration
from cpu_tiers.tools.plan.order import PlanStep
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.proof import proof_of
from cpu_tiers.tools.room.server_queries import Request
from tests.unit.cloud_model.clouds import SHARES, group, provider, query
from tests.unit.plan.clouds import equal_hosts, hosts_of, server

STEP = PlanStep(Migration(server("id", "h0", VCPU=1), "h1", ((("h1", "VCPU"), 1),)))
NONE = Plan(hosts_of(equal_hosts(2, VCPU=8), []))
ONE = NONE._replace(steps=(STEP,))


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
    question = Question(wanted=None) if is_most else Question()
    assert proof_of(plan.hosts, question, plan, (), is_most=is_most).text == text


def test_what_was_not_read_is_in_the_first_lines() -> None:
    plan = ONE._replace(is_proven=True)
    proof = proof_of(plan.hosts, Question(), plan, ("the zone", "x"), is_most=False)
    assert proof.text == (
        "Proven for what is known: no plan has fewer moves. Not known: the zone; x."
    )


def test_a_place_that_no_rule_tells_is_in_the_first_lines() -> None:
    """Two pools have room: nova-scheduler takes either, so the plan is proven for one only."""
    pools = [provider(f"p{n}", None, SHARES, aggregate="a", DISK=9) for n in range(2)]
    hosts = [provider(f"h{n}", None, aggregate="a", VCPU=8) for n in range(2)]
    asks = query(group(VCPU=1, DISK=1))
    hosts_before = hosts_of([*hosts, *pools], [server("a", "h0", asks=asks, VCPU=1)])
    hosts_before.closed = frozenset({"h0"})
    question = Question(leaving=frozenset({"a"}))
    plan = make_plan(hosts_before, question, seconds=0)
    text = proof_of(hosts_before, question, plan, (), is_most=False).text
    assert text.startswith("Proven for what is known: no plan has fewer moves. Not known: which")
    assert text.endswith("nova-scheduler takes of h1.")


LARGE = Request((query(group("", VCPU=9)),))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        pytest.param({"stays": "kept"}, "No plan: b cannot leave", id="Nova does not move it"),
        pytest.param(
            {"request": LARGE},
            "No plan: b cannot leave",
            id="no host is as large",
        ),
    ],
)
def test_there_is_no_plan(change: dict[str, object], text: str) -> None:
    """Six servers, of which one has no place at all: no number of moves empties its host."""
    others = [server(f"a{n}", f"h{n % 3}", VCPU=1) for n in range(5)]
    b = replace(server("b", "h0", VCPU=1), **change)  # type: ignore[arg-type]  # a table
    hosts = hosts_of(equal_hosts(3, VCPU=8), [b, *others], closed=frozenset({"h0"}))
    question = Question(leaving=frozenset(s.uuid for s in hosts.servers if s.host == "h0"))
    plan = make_plan(hosts, question, seconds=2)
    proof = proof_of(hosts, question, plan, (), is_most=False)
    assert proof.text.startswith(text)
    assert proof.text.endswith("Proven.")
    assert proof.value is True


def test_no_plan_for_servers_that_fit_only_one_by_one() -> None:
    """Two servers of 5 leave h0, and only h1 with 8 is left: neither has to stay, and one does."""
    servers = [server("a", "h0", VCPU=5), server("b", "h0", VCPU=5)]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers, closed=frozenset({"h0"}))
    question = Question(leaving=frozenset("ab"))
    plan = make_plan(hosts, question, seconds=2)
    assert len(plan.undone) == 1
    text = proof_of(hosts, question, plan, (), is_most=False).text
    assert text == "No plan: each choice of migrations leaves a server where it is. Proven."


def test_no_plan_for_more_servers_than_there_is_room() -> None:
    """Two hosts of 8 hold four servers of 4 at most, and one is there."""
    hosts = hosts_of(equal_hosts(2, VCPU=8), [server("a", "h0", VCPU=3)])
    question = Question(room=Request((query(group("", VCPU=4)),)), wanted=4)
    plan = make_plan(hosts, question, seconds=2)
    text = proof_of(hosts, question, plan, (), is_most=False).text
    assert text == "No plan: no choice of migrations makes room for 4. Proven."


def test_no_plan_for_a_server_that_no_host_could_hold() -> None:
    hosts = hosts_of(equal_hosts(2, VCPU=8), [])
    question = Question(room=LARGE, wanted=1)
    plan = make_plan(hosts, question, seconds=2)
    text = proof_of(hosts, question, plan, (), is_most=False).text
    assert text == "No plan: no host could hold such a server, even without any other. Proven."
