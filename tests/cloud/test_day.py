"""A day of a cloud of two hosts, compressed: ``CPU_TIERS_DAY=60`` has it last an hour.

Servers with tiers, ports and NUMA nodes boot, resize, move, stop and are deleted, as the seed
draws (``CPU_TIERS_SEED``). Meanwhile each service is restarted, RabbitMQ is lost, and offenders
are planted beside a guest that spins. Everything but the guests runs on the last CPU of the
machine, because the guests of both hosts share CPU 0.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from tests import draws
from tests.cloud import day_hosts
from tests.cloud.day import Day
from tests.cloud.day_agreement import Agreement
from tests.cloud.day_hosts import PORTS
from tests.cloud.day_trouble import Guests, Trouble
from tests.cloud.day_watch import WatchLog
from tests.cloud.flatness import Usages
from tests.cloud.lives import report
from tests.cloud.moving_server import wait_until
from tests.cloud.outages import Outages
from tests.cloud.page import Shell
from tests.cloud.rest import COMPUTE, Cloud
from tests.cloud.two_hosts import HOSTS

MINUTES = float(os.environ.get("CPU_TIERS_DAY") or 0)
pytestmark = pytest.mark.skipif(not MINUTES, reason="takes an hour: CPU_TIERS_DAY=60")

DUE = 100 / 1200
"""The CPUs that are due to a busy Gold guest: its part of the shares of one shared CPU."""
UNPLANTED = 0.005
"""The part of what is due that may be missing while nothing is planted."""
HEAVY = "for each in /sys/fs/cgroup/cpu/machine*/cpu.shares; do echo 16384 > $each; done"
"""Gives the guests of a host, and the second host, a large weight. A host is a control group here,
so its services on the last CPU would take weight from its guests on the first."""
RESTS = 4
"""How often a day stops, and everything is compared."""


@pytest.fixture(scope="module", autouse=True)
def last_cpu() -> Iterator[None]:
    """This process, and what it starts, runs on the last CPU."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {(os.cpu_count() or 1) - 1})
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture(scope="module")
def hosts(shell: Shell, one_node_cloud: Path) -> Cloud:
    return day_hosts.start(shell, one_node_cloud)


@pytest.fixture
def others(hosts: Cloud, one_node_cloud: Path) -> Iterator[list[Cloud]]:
    """Two more clients of the cloud, for threads."""
    shells = [Shell([str(one_node_cloud), "run", "bash"]) for _ in range(2)]
    yield [Cloud(shell) for shell in shells]
    for shell in shells:
        shell.close()


def staying(day: Day) -> Mapping[str, Guests]:
    """Boot what stays on each host: a Gold server that spins, and a paused one without a tier."""
    booted = {
        (host, flavor): day.boot(flavor, host=host, image="busy", name=f"{flavor}-{host}")
        for host in HOSTS
        for flavor in ("gold-node", "untiered")
    }
    day.settle()
    assert day.failures == []
    for host in HOSTS:
        day.cloud.on(host, HEAVY)
        path = f"/servers/{booted[host, 'untiered']}/action"
        assert day.cloud.request("POST", COMPUTE, path, {"pause": None}).status == 202
    paused = "SELECT COUNT(*) FROM instances WHERE NOT deleted AND vm_state = 'paused'"
    assert wait_until(lambda: day.cloud.rows("nova", paused) == [[str(len(HOSTS))]])
    time.sleep(3)  # until the watch has read what it counted before
    return {host: Guests(booted[host, "gold-node"], booted[host, "untiered"]) for host in HOSTS}


def look(usages: Usages, log: WatchLog, ended: Event) -> list[str]:
    """Look at the watches every five seconds, and at the services every minute, or more often.

    Return what failed; the day goes on.
    """
    failures: list[str] = []
    at = time.monotonic()
    while not ended.wait(5):
        try:
            log.look()
            if time.monotonic() > at:
                at = time.monotonic() + min(60.0, MINUTES * 2)
                usages.look()
        except (AssertionError, LookupError, ValueError) as error:
            failures.append(f"nothing to look at: {error}")
            report(f"FAILURE {failures[-1]}")
    return failures


def live(day: Day, agreement: Agreement, trouble: Trouble, threads: Sequence[Future[Any]]) -> None:
    """Have the operations of the day, and compare everything in its rests."""
    begin = time.monotonic()
    rests = [begin + MINUTES * 60 * (turn + 1) / RESTS for turn in range(RESTS)]
    while rests:
        for thread in threads:
            if thread.done():
                thread.result()
        day.step()
        if rests and time.monotonic() > rests[0]:
            del rests[0]
            day.settle()
            with trouble.lock:
                wait_until(lambda: not day.outages.since(time.monotonic()))
                day.settle()
                compare(day, agreement)
        time.sleep(1)


def compare(day: Day, agreement: Agreement) -> None:
    """Compare everything; note what does not agree."""
    breaches = agreement.breaches()
    report(f"{day.number}: compared {dict(agreement.compared)}", *breaches)
    day.failures += [
        f"CPU_TIERS_SEED={draws.SEED}, after operation {day.number}: {breach}"
        for breach in breaches
    ]


def test_a_day(hosts: Cloud, others: list[Cloud]) -> None:
    """All agree in the end, the watch counted what was planted, and all services are flat."""
    ids = hosts.shell.output_of("openstack port list -f value -c Name -c ID").splitlines()
    ports = {name: uuid for uuid, name in map(str.split, ids)}
    assert ports.keys() == set(PORTS)
    outages = Outages()
    day = Day(hosts, outages, ports)
    agreement = Agreement(hosts, day.lost_servers)
    guests = staying(day)
    usages, log = Usages(others[0]), WatchLog(others[0])
    trouble = Trouble(others[1], outages, guests, DUE)
    ended = Event()
    with ThreadPoolExecutor() as pool:
        looking = pool.submit(look, usages, log, ended)
        troubled = pool.submit(trouble.live, MINUTES, ended)
        try:
            live(day, agreement, trouble, [looking, troubled])
            troubled.result()
            day.settle()
            compare(day, agreement)
        finally:
            ended.set()
    log.look()
    failures = [*judge(trouble, log, guests), *flat(usages)]
    report(f"done {dict(day.done)}", f"lost {dict(day.lost)}", f"away {outages.counts()}")
    report(f"started again: {trouble.again}, hung: {day.hung}")
    report(f"left by lost servers: {agreement.left}")
    day.delete_all()
    failures += [*agreement.leftovers(), *day.failures, *trouble.failures, *looking.result()]
    report("the end", *failures)
    assert failures == []


def flat(usages: Usages) -> list[str]:
    """Print the memory and descriptors of all services; return those that are not flat."""
    lives = list(usages.lives())
    report("services", *map(str, lives))
    return [str(life) for life in lives if not life.is_flat]


def judge(trouble: Trouble, log: WatchLog, guests: Mapping[str, Guests]) -> Iterator[str]:
    """Compare what the watch has counted with what was planted, and with nothing besides."""
    for host in HOSTS:
        due = log.last[host].rates[guests[host].gold]
        if due != pytest.approx(DUE, rel=0.01):
            yield f"{host}: {due} CPUs are due to Gold, not {DUE}"
        last, first, gold = log.last[host], log.first[host], guests[host].gold
        planted = [each for each in trouble.planted if each.host == host]
        missing, was_due = last.missing - first.missing, last.due - first.due
        elsewhere = missing - sum(each.host_counted for each in planted)
        gold_elsewhere = log.guests[host, gold] - first.guests.get(gold, 0.0)
        gold_elsewhere -= sum(each.counted for each in planted)
        report(
            f"{host}: {was_due:.1f} s were due, {missing:.2f} are missing, {elsewhere:.2f} of them"
            f" while nothing was planted, {gold_elsewhere:.2f} of these to the busy guest",
            f"{last.unread} files not read, a reading was {log.ages[host]:.1f} s old at most",
        )
        if elsewhere > UNPLANTED * was_due:
            yield f"{host}: {elsewhere:.2f} s are missing, and nothing was planted"
    for each in trouble.planted:
        if not each.missing > 0.2 or each.counted != pytest.approx(each.missing, rel=0.2, abs=0.2):
            yield f"the watch did not count what was planted: {each}"
