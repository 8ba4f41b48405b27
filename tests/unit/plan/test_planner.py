"""Plans: room, groups and what stays."""

from dataclasses import replace

import pytest

from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.room.server_queries import Request
from tests.unit.cloud_model.clouds import group, provider, query
from tests.unit.plan.clouds import assert_each_step_fits, equal_hosts, hosts_of, server

SOLVERS = [pytest.param(20, id="with the solver"), pytest.param(0, id="with the search")]


def new_server(vcpus: int) -> Request:
    return Request((query(group(VCPU=vcpus)),))


def ways(plan: Plan) -> list[tuple[str, str, str]]:
    """Return the server, the source and the target of each step."""
    return [(step.move.server.uuid, step.move.server.host, step.move.host) for step in plan.steps]


@pytest.mark.parametrize("seconds", SOLVERS)
def test_a_move_makes_room(seconds: float) -> None:
    # 4 + 4 of 8 CPUs each are free in halves: a server of 6 needs the 4 of one host to leave.
    servers = [server("a", "h0", VCPU=4), server("b", "h1", VCPU=4)]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers)
    plan = make_plan(hosts, Question(room=new_server(6), wanted=1), seconds=seconds)
    assert len(plan.steps) == 1
    assert (plan.before, plan.after, plan.is_proven, plan.bound) == (0, 1, True, 1)
    assert_each_step_fits(hosts, plan)


@pytest.mark.parametrize("seconds", SOLVERS)
def test_no_move_where_there_is_room(seconds: float) -> None:
    hosts = hosts_of(equal_hosts(1, VCPU=8), [server("a", "h0", VCPU=4)])
    plan = make_plan(hosts, Question(room=new_server(4), wanted=1), seconds=seconds)
    assert (plan.steps, plan.before, plan.after, plan.is_proven) == ((), 1, 1, True)


@pytest.mark.parametrize("seconds", SOLVERS)
def test_no_plan_where_no_moves_help(seconds: float) -> None:
    servers = [server("a", "h0", VCPU=7), server("b", "h1", VCPU=7)]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers)
    plan = make_plan(hosts, Question(room=new_server(3), wanted=1), seconds=seconds)
    assert (plan.steps, plan.after, plan.is_proven) == ((), 0, False)


@pytest.mark.parametrize("seconds", SOLVERS)
def test_as_many_as_the_moves_can_make(seconds: float) -> None:
    # Each of four hosts has 4 of 8 CPUs free; a move frees a host for a server of 8.
    servers = [server(f"s{n}", f"h{n}", VCPU=4) for n in range(4)]
    hosts = hosts_of(equal_hosts(4, VCPU=8), servers)
    question = Question(room=new_server(8), wanted=None, most_moves=2)
    plan = make_plan(hosts, question, seconds=seconds)
    assert (plan.after, len(plan.steps)) == (2, 2)
    assert plan.is_proven == bool(seconds)
    one = make_plan(hosts, question._replace(most_moves=1), seconds=seconds)
    assert (one.after, len(one.steps)) == (1, 1)


@pytest.mark.parametrize("seconds", SOLVERS)
def test_an_empty_host(seconds: float) -> None:
    servers = [server("a", "h0", VCPU=4), server("b", "h0", VCPU=2), server("c", "h1", VCPU=5)]
    hosts = hosts_of(equal_hosts(3, VCPU=8), servers, closed=frozenset({"h0"}))
    plan = make_plan(hosts, Question(leaving=frozenset({"a", "b"})), seconds=seconds)
    assert sorted(way[:2] for way in ways(plan)) == [("a", "h0"), ("b", "h0")]
    assert (plan.undone, plan.is_proven) == ((), True)


def test_another_server_gives_way() -> None:
    # a (6) fits on h1 only after c (3) has gone to h2, which has no room for a.
    providers = [provider(f"h{n}", None, VCPU=total) for n, total in enumerate((6, 8, 4))]
    servers = [server("a", "h0", VCPU=6), server("c", "h1", VCPU=3)]
    hosts = hosts_of(providers, servers, closed=frozenset({"h0"}))
    plan = make_plan(hosts, Question(leaving=frozenset({"a"})), seconds=20)
    assert ways(plan) == [("c", "h1", "h2"), ("a", "h0", "h1")]
    assert plan.steps[1].after == (1,)
    assert (plan.is_proven, plan.bound) == (True, 2)


@pytest.mark.parametrize("seconds", SOLVERS)
def test_what_stays(seconds: float) -> None:
    stuck = replace(server("a", "h0", VCPU=4), stays="it is locked")
    hosts = hosts_of(equal_hosts(2, VCPU=8), [stuck], closed=frozenset({"h0"}))
    plan = make_plan(hosts, Question(leaving=frozenset({"a"})), seconds=seconds)
    assert (plan.steps, plan.undone, plan.is_proven) == ((), (stuck,), False)


@pytest.mark.parametrize("seconds", SOLVERS)
def test_servers_that_must_be_apart(seconds: float) -> None:
    # h1 has room for both, but has a member of the group already, so a goes to h2.
    servers = [server("a", "h0", VCPU=2), server("b", "h1", VCPU=1)]
    apart = [replace(each, apart=("g",)) for each in servers]
    providers = equal_hosts(3, VCPU=8)
    hosts = hosts_of(providers, apart, {"g": 1}, closed=frozenset({"h0"}))
    plan = make_plan(hosts, Question(leaving=frozenset({"a"})), seconds=seconds)
    assert ways(plan) == [("a", "h0", "h2")]
    two = hosts_of(providers[:2], apart, {"g": 1}, closed=frozenset({"h0"}))
    assert make_plan(two, Question(leaving=frozenset({"a"})), seconds=seconds).undone
    loose = hosts_of(providers[:2], apart, {"g": 2}, closed=frozenset({"h0"}))
    assert len(make_plan(loose, Question(leaving=frozenset({"a"})), seconds=seconds).steps) == 1


@pytest.mark.parametrize("seconds", SOLVERS)
def test_a_host_over_its_capacity(seconds: float) -> None:
    # 5 + 2 + 2 of 8: without a server of 2 the host is within its capacity.
    servers = [server("a", "h0", VCPU=5), server("b", "h0", VCPU=2), server("c", "h0", VCPU=2)]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers)
    mends = frozenset(hosts.rows_of("h0"))
    plan = make_plan(hosts, Question(mends=mends), seconds=seconds)
    assert (len(plan.steps), plan.hosts.over(mends)) == (1, {})


def test_nothing_enters_a_host_that_stays_over_its_capacity() -> None:
    servers = [server("a", "h0", VCPU=9, MEMORY_MB=1), server("b", "h1", VCPU=1, MEMORY_MB=1)]
    hosts = hosts_of(
        [provider("h0", None, VCPU=8, MEMORY_MB=9), provider("h1", None, VCPU=8, MEMORY_MB=9)],
        [replace(servers[0], stays="it is locked"), servers[1]],
        closed=frozenset({"h1"}),
    )
    assert make_plan(hosts, Question(leaving=frozenset({"b"})), seconds=20).steps == ()
