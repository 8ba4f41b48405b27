"""How far a plan is: each server of four hosts of 8 CPUs has 4 or 6 CPUs."""

from dataclasses import replace

import pytest

from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer
from cpu_tiers.tools.plan.hosts import Server
from cpu_tiers.tools.plan.progress import PlannedMove, progress_of, progress_verdict
from tests.unit.plan.clouds import equal_hosts, hosts_of, server

TO_1, TO_2 = PlannedMove("a", "h0", "h1"), PlannedMove("a", "h1", "h2")


def words(moves: list[PlannedMove], *servers: Server, state: str = "ACTIVE") -> tuple[str, bool]:
    hosts = hosts_of(equal_hosts(4, VCPU=8), servers)
    known = {each.uuid: SnapshotServer(name=each.uuid, state=state) for each in servers}
    return progress_verdict(progress_of(hosts, moves, known), len(moves))


@pytest.mark.parametrize(
    ("moves", "host", "state", "verdict"),
    [
        ([TO_1], "h0", "ACTIVE", "0 of 1 migration are done, 1 still possible as planned. The"),
        ([TO_1], "h1", "ACTIVE", "1 of 1 migration are done. All is done."),
        ([TO_1], "h1", "PAUSED", "1 of 1 migration are done. All is done."),
        ([TO_1], "h0", "MIGRATING", "0 of 1 migration are done, 1 on the way. The rest holds."),
        ([TO_1], "h1", "VERIFY_RESIZE", "1 of 1 migration are done, 1 on the way. The rest holds"),
        ([TO_1], "h0", "ERROR", "0 of 1 migration are done, 1 failed. Plan again: the rest does"),
        ([TO_1], "h3", "ACTIVE", "0 of 1 migration are done, 1 failed. Plan again"),
        ([TO_1, TO_2], "h1", "ACTIVE", "1 of 2 migrations are done, 1 still possible as planned."),
        ([TO_1, TO_2], "h2", "ACTIVE", "2 of 2 migrations are done. All is done."),
        ([TO_1, TO_2], "h0", "ACTIVE", "0 of 2 migrations are done, 2 still possible"),
    ],
)
def test_where_a_server_is(
    moves: list[PlannedMove], host: str, state: str, verdict: str
) -> None:  # a table
    text, is_no = words(moves, server("a", host, VCPU=4), state=state)
    assert text.startswith(verdict)
    assert is_no is ("Plan again" in text)


def test_a_server_that_is_gone() -> None:
    text, is_no = words([TO_1], server("b", "h0", VCPU=4))
    assert (text, is_no) == ("0 of 1 migration are done, 1 server gone. All is done.", False)


def test_a_place_that_another_server_took() -> None:
    text, is_no = words([TO_1], server("a", "h0", VCPU=4), server("b", "h1", VCPU=6))
    assert is_no
    assert "1 not possible any more. Plan again" in text
    # A server of the plan may leave the place first.
    away = PlannedMove("b", "h1", "h3")
    text, is_no = words([away, TO_1], server("a", "h0", VCPU=4), server("b", "h1", VCPU=6))
    assert not is_no
    assert "2 still possible" in text


def test_a_server_that_stays_now() -> None:
    locked = replace(server("a", "h0", VCPU=4), stays="it is kept")
    hosts = hosts_of(equal_hosts(2, VCPU=8), [locked])
    progress = progress_of(hosts, [TO_1], {})
    assert [(each.uuid, why) for each, why in progress.broken] == [("a", "it is kept")]
    hosts = hosts_of(equal_hosts(2, VCPU=8), [server("a", "h0", VCPU=4)], closed=frozenset({"h1"}))
    assert [why for _, why in progress_of(hosts, [TO_1], {}).broken] == ["h1 takes no servers"]
