"""The words of a plan: singular and plural, what stays, and what needs a place between."""

from cpu_tiers.tools.plan.hosts import Migration
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.verdicts import drain_verdict, room_verdict, unmoved
from tests.unit.plan.clouds import equal_hosts, hosts_of, server


def test_room() -> None:
    none = Plan(hosts_of([], []), before=1, after=1)
    assert room_verdict(none, "gold", 1, is_no=False) == (
        "There is room for 1 server of flavor gold now, without any migration."
    )
    assert room_verdict(none, "gold", 2, is_no=True) == (
        "There is room for 1 server of flavor gold now, and no migrations were found that make"
        " more room."
    )


def test_a_drain() -> None:
    servers = [server("a", "h0", VCPU=1), server("b", "h0", VCPU=1)]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers, closed=frozenset({"h0"}))
    plan = make_plan(hosts, Question(leaving=frozenset({"a", "b"})), seconds=0)
    text = drain_verdict(plan, ["cn0"], 2, "")
    assert text == "2 migrations for 2 servers of cn0: all can leave."


def test_what_needs_a_place_between() -> None:
    # a and b would exchange their hosts: neither has an order, and only a should leave.
    a, b = server("a", "h0", VCPU=4), server("b", "h1", VCPU=4)
    stuck = (Migration(a, "h1", ()), Migration(b, "h0", ()))
    plan = Plan(hosts_of([], []), undone=(a,), stuck=stuck)
    assert [(each.uuid, "between" in why) for each, why in unmoved(plan)] == [
        ("a", True),
        ("b", True),
    ]
