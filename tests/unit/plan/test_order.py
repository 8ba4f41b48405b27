"""The order of moves: each fits while the source still has its part."""

from dataclasses import replace

from cpu_tiers.tools.plan.hosts import Migration, Server
from cpu_tiers.tools.plan.order import ordered, with_after
from tests.unit.cloud_model.clouds import provider
from tests.unit.plan.clouds import equal_hosts, hosts_of, server


def to(each: Server, host: str) -> Migration:
    """Return the move of a server with VCPU only to another host."""
    ((_, amount),) = each.amounts
    return Migration(each, host, (((host, "VCPU"), amount),))


def test_a_move_waits_for_the_room_of_another() -> None:
    a, b = server("a", "h0", VCPU=4), server("b", "h1", VCPU=4)
    hosts = hosts_of(equal_hosts(3, VCPU=4), [a, b])
    steps, stuck = ordered([to(a, "h1"), to(b, "h2")], hosts)
    assert [(step.move.server.uuid, step.after) for step in steps] == [("b", ()), ("a", (1,))]
    assert stuck == ()


def test_moves_to_free_hosts_wait_for_nothing() -> None:
    a, b = server("a", "h0", VCPU=2), server("b", "h0", VCPU=2)
    hosts = hosts_of(equal_hosts(2, VCPU=4), [a, b])
    steps, _ = ordered([to(a, "h1"), to(b, "h1")], hosts)
    assert [step.after for step in steps] == [(), ()]


def test_a_ring_takes_a_place_between() -> None:
    a, b = server("a", "h0", VCPU=4), server("b", "h1", VCPU=4)
    hosts = hosts_of(equal_hosts(3, VCPU=4), [a, b])
    steps, stuck = ordered([to(a, "h1"), to(b, "h0")], hosts)
    ways = [(s.move.server.uuid, s.move.server.host, s.move.host, s.after) for s in steps]
    assert ways == [("a", "h0", "h2", ()), ("b", "h1", "h0", (1,)), ("a", "h2", "h1", (1, 2))]
    assert stuck == ()


def test_a_ring_without_a_place_between_has_no_order() -> None:
    a, b = server("a", "h0", VCPU=4), server("b", "h1", VCPU=4)
    hosts = hosts_of(equal_hosts(2, VCPU=4), [a, b])
    steps, stuck = ordered([to(a, "h1"), to(b, "h0")], hosts)
    assert (steps, [move.server.uuid for move in stuck]) == ((), ["a", "b"])


def test_a_move_that_a_ring_does_not_need_waits() -> None:
    # h2 has room for one server now. If m goes first, k and q wait for each other for ever.
    m, k, q = server("m", "h0", VCPU=4), server("k", "h1", VCPU=4), server("q", "h2", VCPU=4)
    providers = [*equal_hosts(2, VCPU=4), provider("h2", None, VCPU=8)]
    hosts = hosts_of(providers, [m, k, q])
    steps, stuck = ordered([to(m, "h2"), to(k, "h2"), to(q, "h1")], hosts)
    assert [(step.move.server.uuid, step.after) for step in steps] == [
        ("k", ()),
        ("q", (1,)),
        ("m", (2,)),
    ]
    assert stuck == ()


def test_a_step_waits_until_nova_scheduler_hears_that_a_member_has_left() -> None:
    """The members of a group may not share a host: b comes to h0 after a has left it."""
    a, b = (
        replace(server(name, host, VCPU=1), apart=("g",))
        for name, host in (("a", "h0"), ("b", "h1"))
    )
    for is_off in (False, True):
        a = replace(a, is_off=is_off)
        hosts = hosts_of(equal_hosts(3, VCPU=8), [a, b], {"g": 1})
        steps, _ = ordered([to(a, "h2"), to(b, "h0")], hosts)
        # The source of a cold migration tells nova-scheduler itself.
        assert [(s.after, s.settles) for s in steps] == [((), False), ((1,), not is_off)]


def test_a_step_that_waits_for_amounts_needs_no_word_of_nova_scheduler() -> None:
    a, b = server("a", "h0", VCPU=4), server("b", "h1", VCPU=4)
    steps, _ = ordered([to(a, "h1"), to(b, "h2")], hosts_of(equal_hosts(3, VCPU=4), [a, b]))
    assert [step.settles for step in steps] == [False, False]


def test_a_step_without_the_name_of_its_host_is_alone() -> None:
    servers = [server(name, "h0", VCPU=1) for name in "abc"]
    moves = [to(each, "h1") for each in servers]
    moves[1] = moves[1]._replace(is_named=False)
    steps = with_after(moves, hosts_of(equal_hosts(2, VCPU=8), servers).room())
    assert [step.after for step in steps] == [(), (1,), (2,)]


def test_a_hint_keeps_only_the_server_that_has_it_away() -> None:
    """Nova reads different_host of the server that moves, and not of the servers of a host."""
    hinted = replace(server("hinted", "h0", VCPU=1), apart=("pair",))
    named = replace(server("named", "h1", VCPU=1), beside=("pair",))
    hosts = hosts_of(equal_hosts(2, VCPU=8), [hinted, named], {"pair": 1})
    assert hosts.migration(hinted, "h1", hosts.room()) is None
    move = hosts.migration(named, "h0", hosts.room())
    assert move is not None
    assert named.discord("h0", hosts.room()) == 1
    after = hosts.after([move])
    assert after.migration(hinted, "h1", after.room()) is not None
    (step,) = with_after([move], hosts.room())
    assert (step.after, step.settles) == ((), False)
