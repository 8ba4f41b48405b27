"""Both concurrency modes of Nova: chaos around nova-scheduler, other tools, HUP and TERM.

``CPU_TIERS_CHAOS=1`` runs the long form: more requests, and a minute between two faults.
"""

import itertools
import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import oslo_messaging
import pytest

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, VCPU, VCPU_SHARES
from tests import draws
from tests.hostile_answers import REFUSED, SELECTED, UNKNOWN_NODES, Answer
from tests.processes import configuration
from tests.processes.cloud import OURS as ON_HOSTS
from tests.processes.cloud import Cloud
from tests.processes.configuration import Sections
from tests.processes.daemons import Daemon, free_port
from tests.processes.hosts import TWO_NODES
from tests.processes.modes import (
    LOADED,
    MODES,
    Mode,
    api_beside_vendor,
    beside_vendor,
    environment,
    services,
    without_scheduler,
)
from tests.processes.schedulers import ask, ask_many, request_spec
from tests.processes.slow_placement import CANDIDATES, LOOKS, NEW_NAMES, REASONS
from tests.processes.vendor import FUNCTIONS, saw

MIB = 2**20
IS_LONG = "CPU_TIERS_CHAOS" in os.environ
MANY, FEW = (300, 100) if IS_LONG else (100, 20)
PAUSE_SECONDS = 60
"""After a warning, a worker logs none about the same work for so long."""

TIER = {"quota:cpu_shares_multiplier": "100"}
RECORD = "record of a decision"
TOO_LARGE_MB = 2**30
NO_HOST = "No valid host was found."
REASON = f"{NO_HOST} A host would have room without one of these: {TOO_LARGE_MB} {MEMORY_MB}"


@pytest.fixture(scope="module")
def bare(cloud: Cloud) -> Iterator[Cloud]:
    """A cloud without a nova-scheduler."""
    with without_scheduler(cloud):
        yield cloud


@pytest.fixture(scope="module", params=MODES)
def mode(request: pytest.FixtureRequest, bare: Cloud) -> Iterator[Mode]:
    with services(bare, request.param) as mode:
        yield mode
        assert mode.cloud.complaints() == []


def check_warnings(mode: Mode, work: str, *, before: int = 0) -> int:
    """Check that a worker has warned of dropped work, and no worker twice within the pause.

    :param before: the number of warnings of the work that were checked before.
    :returns: the number of warnings of the work.
    """
    warnings = mode.warnings()
    number = sum(len(times) for (_, dropped), times in warnings.items() if dropped == work)
    assert number > before
    for of_worker in warnings.values():
        for first, second in itertools.pairwise(of_worker):
            assert (second - first).total_seconds() > PAUSE_SECONDS - 1
    return number


def test_a_placement_that_answers_no_request_of_cpu_tiers(mode: Mode) -> None:
    """Neither the names that the query needs, nor the reason why no host has room."""
    with mode.placement.stalls(NEW_NAMES) as stalled:
        answers = {*ask_many(FEW if IS_LONG else 5, memory_mb=TOO_LARGE_MB)}
    assert answers <= {NO_HOST, REASON}  # Placement has the names from the mode before
    assert stalled
    check_warnings(mode, "new names in Placement")
    mode.wait_until(lambda: ask_many(1, memory_mb=TOO_LARGE_MB) == [REASON], "the reason")
    with mode.placement.stalls(REASONS) as stalled:
        assert {*ask_many(FEW, memory_mb=TOO_LARGE_MB)} == {NO_HOST}
    assert stalled
    check_warnings(mode, "reason why a server gets no host")


def test_a_placement_that_answers_nonsense(mode: Mode) -> None:
    """A server without NUMA nodes gets a host where a stock nova-scheduler selects one.

    Without cpu-tiers, too, some of the answers are an exception of nova-scheduler.
    """
    survived = {**SELECTED, **UNKNOWN_NODES}
    answers = {**survived, **REFUSED}
    names = sorted(answers)[draws.SEED % draws.DAYS :: draws.DAYS]
    selected = {name for name in names if selects(mode, answers[name])}
    assert selected == survived.keys() & names
    assert selects(mode, SELECTED["as Placement answers"])


def selects(mode: Mode, answer: Answer) -> bool:
    """Tell whether nova-scheduler selects a host, and delete the claim."""
    spec = request_spec()
    with mode.placement.answers(CANDIDATES, answer):
        try:
            host = ask(spec)
        except oslo_messaging.RemoteError:
            return False
    if host.startswith(NO_HOST):
        return False
    mode.cloud.placement.ask("DELETE", f"/allocations/{spec.instance_uuid}")
    return True


def test_a_record_that_cannot_be_written(mode: Mode) -> None:
    """All requests are answered, whatever is in the place of the record: at once, 100 or more."""
    number = 0
    for fault in (full_disk, pipe, folder):
        mode.record.unlink(missing_ok=True)
        with fault(mode):
            requests = MANY if IS_LONG else FEW
            assert len(ask_many(requests, rebuild=True)) == requests
        # In the short form, a worker that warned of the fault before may warn of none now.
        number = check_warnings(mode, RECORD, before=number if IS_LONG else 0)
        if IS_LONG or fault is pipe:
            hang_up(mode)
        if IS_LONG:
            time.sleep(PAUSE_SECONDS)
    mode.record.unlink(missing_ok=True)
    mode.wait_until(lambda: ask_many(1, rebuild=True) and mode.record.exists(), "a record")
    lines = filter(None, mode.record.read_text().splitlines())
    assert [json.loads(line)["flavor"] for line in lines]


@contextmanager
def full_disk(mode: Mode) -> Iterator[None]:
    """A file of the largest size that a worker may write now, but for 100 bytes."""
    with mode.record.open("ab") as file:
        file.truncate(MIB - 100)
    pids = mode.workers()
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (MIB, resource.RLIM_INFINITY))
    yield
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@contextmanager
def pipe(mode: Mode) -> Iterator[None]:
    """A pipe without a reader."""
    os.mkfifo(mode.record)
    yield


@contextmanager
def folder(mode: Mode) -> Iterator[None]:
    mode.record.mkdir()
    yield
    mode.record.rmdir()


def hang_up(mode: Mode) -> None:
    """Send SIGHUP to nova-scheduler, and wait until its workers answer.

    With native threads, each worker ends and another takes its place. A request that the worker
    has taken from the queue gets no answer then, also without cpu-tiers.
    """
    before = {*mode.workers()}
    os.kill(mode.scheduler.pid, signal.SIGHUP)
    if mode.name == "threading":
        mode.wait_until(
            lambda: len(now := mode.workers()) == len(before) and before.isdisjoint(now),
            "there are other workers",
        )
    ask_many(1, rebuild=True)


def test_a_life_beside_wrappers_of_other_products(mode: Mode) -> None:
    """A product of a vendor wraps functions that cpu-tiers wraps, and osprofiler is on."""
    cloud, (_, compute, api) = mode.cloud, mode.daemons
    flavor = cloud.flavor(TIER, vcpus=2)
    with mode.placement.stalls(LOOKS) as stalled:
        server = cloud.boot(flavor)
    assert stalled
    check_warnings(mode, "look for oversold claims")
    check_server(mode, server)
    faulty = cloud.flavor({**TIER, "quota:cpu_shares": "100"})
    with pytest.raises(AssertionError, match=r"400 .*both are set"):
        cloud.boot(faulty)
    hang_up(mode)
    os.kill(api.pid, signal.SIGHUP)
    mode.wait_until(lambda: api.text.count(LOADED) == 2, "nova-api is loaded again")
    if mode.name == "eventlet":  # with native threads, Nova 34's nova-compute serves no more
        os.kill(compute.pid, signal.SIGHUP)
        mode.wait_until(lambda: "Reloading compute RPC API" in compute.text, "HUP")
    check_server(mode, cloud.boot(flavor))
    for daemon, (service, (*_, function)) in zip(mode.daemons, FUNCTIONS.items(), strict=True):
        log = daemon.text
        assert f"cpu-tiers in {service} has the features" in log
        assert "OSProfiler is enabled" in log
        assert saw(function) in log


def check_server(mode: Mode, server: str) -> None:
    held = {VCPU: 2, MEMORY_MB: 512, DISK_GB: 1, VCPU_SHARES: 200}
    assert mode.cloud.held(server) == {mode.name: held}
    assert mode.cloud.domain(server, mode.name).findtext("cputune/shares") == "200"


def test_term_ends_each_service(mode: Mode) -> None:
    with ThreadPoolExecutor() as threads:
        assert list(threads.map(Daemon.end, mode.daemons)) == [0, 0, 0]


def test_a_wrapper_that_hides_parameters_keeps_a_service_from_starting(
    cloud: Cloud, tmp_path: Path
) -> None:
    """nova-compute and nova-api say which function does not fit, and how to go on.

    tests/nova/test_loading.py has nova-scheduler.
    """
    conf = cloud.control.write_conf(tmp_path, {"api": {"refuse_faulty_flavors": True}})
    own: Sections = {"DEFAULT": {"host": "refused", "state_path": tmp_path}}
    of_compute = configuration.write(
        tmp_path / "compute" / "nova.conf", cloud.control.common, ON_HOSTS, own
    )

    def check(mode: str, service: str) -> None:
        command = [*beside_vendor("nova-compute"), str(of_compute)]
        if service == "nova-api":
            command = api_beside_vendor(free_port())
        env = {**environment(mode, "plain", conf), **TWO_NODES, "FAKE_NAME": "refused"}
        done = Daemon(name=service, command=command, folder=tmp_path, env=env).run()
        assert done.returncode != 0, done.stdout
        expected = f"{'.'.join(FUNCTIONS[service])} was expected with the parameters "
        assert expected in done.stdout, done.stdout
        (line, *_) = [line for line in done.stdout.splitlines() if expected in line]
        assert "cpu-tiers does not fit Nova 34" in line
        assert "wrap.<locals>.seen, which wraps the function of Nova without" in line
        assert "Without the feature, " in line

    both = ("nova-compute", "nova-api")
    with ThreadPoolExecutor(2) as threads:
        checks = [threads.submit(check, *each) for each in itertools.product(MODES, both)]
    for done in checks:
        done.result()
