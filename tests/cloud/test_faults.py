"""Programs of the cloud are away or killed while servers move, and hosts and commands write.

Each case is a fault in an operation, at a drawn moment, and prints a line. ``CPU_TIERS_SEED``
repeats the moments, and ``CPU_TIERS_FAULTS=stock`` has the same faults in a stock Nova. The tests
are steps of one life of a cloud, and run in their order.
"""

import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import draws
from tests.cloud import two_hosts
from tests.cloud.faults import FAULTS, Fault
from tests.cloud.lives import Lives, report
from tests.cloud.moving_server import wait_until
from tests.cloud.operations import OPERATIONS
from tests.cloud.page import Shell
from tests.cloud.rest import PLACEMENT, Cloud
from tests.cloud.starting_host import MOMENTS, StartingHost, shares_on
from tests.cloud.tiers import TIERS
from tests.cloud.writing_command import HEAL, SYNC

WANTED = os.environ.get("CPU_TIERS_FAULTS", "")
HAS_TIERS = WANTED != "stock"
pytestmark = pytest.mark.skipif(
    WANTED not in {"cpu-tiers", "stock"}, reason="takes hours: CPU_TIERS_FAULTS=cpu-tiers"
)


@pytest.fixture(scope="module")
def hosts(shell: Shell, one_node_cloud: Path) -> Cloud:
    """Two hosts, with cpu-tiers unless the cloud is to be a stock one, and no option is on."""
    two_hosts.start(shell, one_node_cloud, has_tiers=HAS_TIERS)
    return Cloud(shell)


@pytest.fixture(scope="module")
def lives(hosts: Cloud) -> Lives:
    return Lives(hosts, has_tiers=HAS_TIERS)


@pytest.fixture(scope="class")
def starting_host(lives: Lives) -> Iterator[StartingHost]:
    """The first host, with two servers and a migration that holds the allocations of a third."""
    servers = [lives.servers["gold"], lives.servers["mixed"], lives.server("gold")]
    lives.bring(servers[0], "resized", "compute2")
    for server in servers[1:]:
        lives.bring(server, "active", "compute1")
    host = StartingHost(lives.cloud)
    yield host
    host.forget()
    host.start(reports_shares=False)
    for server in servers:
        server.delete()
    lives.checker.remove_leaks()  # of the migration: no server was deleted in its state


@pytest.mark.skipif(not HAS_TIERS, reason="Nova has no shares")
class TestFirstStart:
    """nova-compute starts to report shares. The host is put back after the last test."""

    @pytest.mark.parametrize(
        "fault", [each for each in FAULTS if each.host == "compute1"], ids=str
    )
    def test_shares(self, fault: Fault, starting_host: StartingHost, lives: Lives) -> None:
        """All consumers get their shares in one transaction, in this start or in the next."""
        chance = random.Random(f"{draws.SEED} {fault}")
        moment = chance.choice(MOMENTS)
        outage = chance.uniform(1, 10) if moment else chance.uniform(10, 30)
        starting_host.forget()
        has_come = starting_host.start_with(fault, moment)
        time.sleep(outage)
        fault.end(lives.cloud)
        seen: list[tuple[int, ...]] = [(0, 0, 0)]

        def has_shares() -> bool:
            seen.append(tuple(shares_on(lives.checker.held(), "compute1")))
            return seen[-1] == (50, 100, 100)

        by_itself, end = wait_until(has_shares), starting_host.end()
        if not by_itself:
            starting_host.stop()
            starting_host.start(reports_shares=True)
        is_done = wait_until(has_shares)
        breaches = [*lives.checker.guests(), *lives.checker.tracebacks()]
        report(
            f"first start, {fault}, {moment or 'before'} ({has_come}), {outage:.1f} s: {end};"
            f" {'done' if by_itself else 'done by a restart' if is_done else 'not done'}",
            *breaches,
        )
        assert is_done
        assert set(seen) == {(0, 0, 0), (50, 100, 100)}
        assert breaches == []


@pytest.fixture(scope="module")
def switched_on(lives: Lives) -> None:
    if HAS_TIERS:
        two_hosts.switch_on(lives.cloud.shell)
    lives.servers["gold"].wait_for_services()


@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.usefixtures("switched_on")
def test_servers_live_through(fault: Fault, lives: Lives) -> None:
    name = random.Random(f"{draws.SEED} {fault}").choice(sorted(TIERS))
    broken = {each.name: lives.live(fault, each, name) for each in OPERATIONS}
    assert {name: breaches for name, breaches in broken.items() if breaches} == {}


@pytest.fixture(scope="module")
def robbed(lives: Lives, switched_on: None) -> Iterator[Callable[[], None]]:
    """Two servers; the function takes shares from the first, and all allocations of the second."""
    lacking, bare = (lives.servers[name] for name in ("gold", "mixed"))
    for server in (lacking, bare):
        lives.bring(server, "active", "compute1")

    def rob() -> None:
        lives.allocate(lacking, {"VCPU": 1, "MEMORY_MB": 128})
        lives.allocate(bare, {})

    yield rob
    for server in (lacking, bare):
        server.delete()


@pytest.mark.skipif(not HAS_TIERS, reason="Nova has no shares")
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_heal(fault: Fault, robbed: Callable[[], None], lives: Lives) -> None:
    """The servers of a host are healed all or not at all, and by a second run."""
    robbed()
    before = lives.checker.held()
    lives.run_with(fault, HEAL)
    after = lives.checker.held()
    assert after == before or list(lives.checker.allocations()) == []
    status, line = lives.run(HEAL)
    assert status == 0, line
    assert lives.checker.breaches() == []


@pytest.mark.skipif(not HAS_TIERS, reason="Nova has no shares")
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_sync(fault: Fault, lives: Lives) -> None:
    """A second run writes the rest, and a third run nothing."""
    lives.run_with(fault, SYNC)
    status, line = lives.run(SYNC)
    assert status == 0, line
    assert lives.run(SYNC) == (0, "")
    (spare,) = lives.cloud.get(PLACEMENT, "/resource_providers?name=spare")["resource_providers"]
    lives.cloud.request("DELETE", PLACEMENT, f"/resource_providers/{spare['uuid']}")


@pytest.mark.skipif(not HAS_TIERS, reason="Nova has no shares")
def test_a_full_disk(hosts: Cloud) -> None:
    """The old plan stays if the new plan cannot be saved."""
    prepare = (
        "mkdir -p /run/full && mount -t tmpfs -o size=4k tmpfs /run/full"
        " && echo old > /run/full/plan.json"
        " && cd /etc/nova && cat nova.conf nova-compute.conf > /run/nodes.conf"
        " && printf '[compute]\\nenable_numa_reporting_to_placement = true\\n' >> /run/nodes.conf"
    )
    assert hosts.on("compute1", prepare) == (0, "")
    plan = "reshape plan --host compute1 --connect qemu:///system --save /run/full/plan.json"
    status, output = hosts.on("compute1", f"cpu-tiers --config-file /run/nodes.conf {plan}")
    assert status == 1, output
    assert "No space left on device" in output
    assert hosts.on("compute1", "cd /run/full && grep -H . *") == (0, "plan.json:old")
    assert hosts.on("compute1", "umount /run/full") == (0, "")
