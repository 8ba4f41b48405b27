"""Servers whose disk a shared pool gives: Placement has no such place on a host that is named.

Nova names the host of a step by ``in_tree``, and Placement takes no sharing provider with it.
"""

from cpu_tiers.tools.plan.hosts import Hosts, Server
from cpu_tiers.tools.plan.planner import Question, make_plan
from cpu_tiers.tools.plan.verdicts import unmoved
from tests.unit.cloud_model.clouds import SHARES, group, provider, query
from tests.unit.plan.clouds import hosts_of, server

ASKS = query(group(VCPU=2, DISK_GB=1))


def cloud(*cpus: int, own_disk: str = "") -> tuple[Hosts, Server]:
    """Return hosts with these CPUs, of which the first is to become empty of its server.

    :param own_disk: a host with a disk of its own.
    """
    hosts = [
        provider(
            f"h{n}",
            None,
            aggregate="a",
            VCPU=total,
            **({"DISK_GB": 9} if f"h{n}" == own_disk else {}),
        )
        for n, total in enumerate(cpus)
    ]
    pool = provider("pool", None, SHARES, aggregate="a", DISK_GB=9)
    resident = server("s", "h0", asks=ASKS, VCPU=2)
    before = hosts_of([*hosts, pool], [resident])
    before.closed = before.disabled = frozenset({"h0"})
    return before, resident


LEAVES = Question(leaving=frozenset({"s"}))


def test_a_single_host_has_room() -> None:
    hosts, _ = cloud(4, 4, 1)  # h2 has 1 CPU of 2
    (step,) = make_plan(hosts, LEAVES, seconds=1).steps
    assert (step.move.host, step.move.is_named) == ("h1", False)


def test_nova_would_choose() -> None:
    plan = make_plan(cloud(4, 4, 4)[0], LEAVES, seconds=1)
    assert plan.steps == ()
    ((_, why),) = unmoved(plan)
    assert "h1, h2 have room" in why
    assert "without --host" in why


def test_a_host_that_the_plan_leaves_out_is_open_for_nova() -> None:
    hosts, _ = cloud(4, 4, 4)
    hosts.closed |= {"h2"}  # --exclude h2
    assert make_plan(hosts, LEAVES, seconds=1).steps == ()
    hosts.disabled |= {"h2"}  # and now its nova-compute is disabled
    assert len(make_plan(hosts, LEAVES, seconds=1).steps) == 1


def test_a_host_with_a_disk_of_its_own_can_be_named() -> None:
    (step,) = make_plan(cloud(4, 4, 4, own_disk="h2")[0], LEAVES, seconds=1).steps
    assert (step.move.host, step.move.is_named) == ("h2", True)
    assert {uuid for (uuid, _), _ in step.move.amounts} == {"h2"}


def test_an_evacuation_names_no_host() -> None:
    hosts, resident = cloud(4, 4, 4)
    assert hosts.evacuation(resident, "h1", hosts.room()) is not None
    assert hosts.migration(resident, "h1", hosts.room()) is None
