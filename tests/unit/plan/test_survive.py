"""Which servers find no place if a host fails, in the order in which Nova takes hosts."""

import time
from dataclasses import replace

from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.planner import Plan, Question
from cpu_tiers.tools.plan.survive import Sets, Survival, Survivors, fullest_sets, make_survive
from tests.unit.cloud_model.clouds import provider
from tests.unit.plan.clouds import equal_hosts, hosts_of, server


def homeless(hosts: Hosts, *failed: str) -> list[str]:
    survivors = Survivors(hosts)
    return [each.uuid for each in survivors.lose(failed)[0].homeless]


def test_the_servers_that_find_no_place() -> None:
    servers = [server("a", "h0", VCPU=4), server("b", "h0", VCPU=3), server("c", "h1", VCPU=4)]
    assert homeless(hosts_of(equal_hosts(3, VCPU=8), servers), "h0") == []
    assert homeless(hosts_of(equal_hosts(2, VCPU=8), servers), "h0") == ["b"]  # 8 - 4 - 4
    assert homeless(hosts_of(equal_hosts(2, VCPU=8), servers), "h1") == ["c"]  # 8 - 7


def test_nova_takes_the_host_with_the_most_room() -> None:
    # Nova spreads: a and b go to h1 and h2, so the server of 6 has no place; packed it would have.
    servers = [server("a", "h0", VCPU=2), server("b", "h0", VCPU=2), server("c", "h0", VCPU=6)]
    assert homeless(hosts_of(equal_hosts(3, VCPU=7), servers), "h0") == ["c"]


def test_hosts_that_fail_together() -> None:
    servers = [server(name, host, VCPU=5) for name, host in (("a", "h0"), ("b", "h1"))]
    hosts = hosts_of(equal_hosts(3, VCPU=8), servers)
    assert homeless(hosts, "h0") == []
    assert homeless(hosts, "h0", "h1") == ["b"]


def test_a_group_that_must_be_apart() -> None:
    servers = [server("a", "h0", VCPU=1), server("b", "h1", VCPU=1)]
    servers = [replace(each, apart=("g",)) for each in servers]
    hosts = hosts_of(equal_hosts(2, VCPU=8), servers, {"g": 1})
    assert homeless(hosts, "h0") == ["a"]


def test_a_server_that_cannot_be_migrated_is_evacuated_all_the_same() -> None:
    locked = replace(server("a", "h0", VCPU=1), stays="it is locked")
    assert homeless(hosts_of(equal_hosts(2, VCPU=8), [locked]), "h0") == []


def test_what_a_move_left_on_a_host_is_not_evacuated_and_takes_its_room_still() -> None:
    left = replace(server("m", "h0", VCPU=6), is_lost_with_host=False)
    hosts = hosts_of(equal_hosts(2, VCPU=8), [left, server("a", "h1", VCPU=3)])
    assert homeless(hosts, "h0") == []
    assert homeless(hosts, "h1") == ["a"]  # 8 - 6


def survival(hosts: Hosts, sets: Sets | None = None) -> Survival:
    sets = [(name,) for name in hosts.names] if sets is None else sets
    return make_survive(hosts, sets, Question(), Plan(hosts), seconds=60)


def test_no_moves_where_every_host_may_fail() -> None:
    hosts = hosts_of(equal_hosts(2, VCPU=8), [server("a", "h0", VCPU=4)])
    assert (survival(hosts).bad, survival(hosts).plan.steps) == ([], ())


def test_a_move_makes_room_for_the_servers_of_a_failed_host() -> None:
    # If h0 fails, a (6) finds 4 and 4. With b on h2, h1 is empty; if h2 fails, h1 takes 4 + 4.
    servers = [server("a", "h0", VCPU=6), server("b", "h1", VCPU=4), server("c", "h2", VCPU=4)]
    hosts = hosts_of(equal_hosts(3, VCPU=8), servers)
    found = survival(hosts)
    assert [loss.hosts for loss in found.bad] == [("h0",)]
    assert (len(found.plan.steps), found.left) == (1, [])
    assert found.plan.steps[0].move.server.uuid in {"b", "c"}


def test_a_server_goes_before_its_host_fails() -> None:
    # Nova spreads a and b, and c finds no place: after one move each host may fail.
    servers = [server("a", "h0", VCPU=2), server("b", "h0", VCPU=2), server("c", "h0", VCPU=6)]
    hosts = hosts_of([provider("h0", None, VCPU=11), *equal_hosts(3, VCPU=7)[1:]], servers)
    found = survival(hosts)
    assert [loss.hosts for loss in found.bad] == [("h0",)]
    assert (len(found.plan.steps), found.left) == (1, [])


def test_no_moves_help_where_the_room_is_too_small() -> None:
    servers = [server("a", "h0", VCPU=8), server("b", "h1", VCPU=1)]
    found = survival(hosts_of(equal_hosts(2, VCPU=8), servers))
    assert (found.plan.steps, len(found.bad), found.left) == ((), 2, found.bad)


def test_the_search_for_moves_ends_in_time_where_no_host_has_room() -> None:
    # 25 full hosts with 24 servers of 24 sizes each: to try all moves takes minutes.
    sizes = {f"s{host}-{size}": (f"h{host}", size) for host in range(25) for size in range(1, 25)}
    servers = [server(name, host, VCPU=size) for name, (host, size) in sizes.items()]
    hosts = hosts_of(equal_hosts(25, VCPU=sum(range(1, 25))), servers)
    start = time.process_time()
    found = make_survive(
        hosts, [(name,) for name in hosts.names], Question(), Plan(hosts), seconds=0.5
    )
    assert time.process_time() - start < 10
    assert [len(loss.homeless) for loss in found.left] == [24] * 25


def test_the_sets_with_the_most_servers_come_first() -> None:
    servers = [server("a", "h1", VCPU=1), server("b", "h2", VCPU=1), server("c", "h2", VCPU=1)]
    sets, is_complete = fullest_sets(hosts_of(equal_hosts(3, VCPU=8), servers), 2)
    assert (list(sets), is_complete) == ([("h2", "h1"), ("h2", "h0"), ("h1", "h0")], True)
