"""Both concurrency modes of Nova: chaos around nova-scheduler, other tools, HUP and TERM.

``CPU_TIERS_CHAOS=1`` runs the long form: more requests, and a minute between two faults.
"""

import itertools
import json
import os
import re
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import oslo_messaging
import pytest

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, VCPU, VCPU_SHARES
from tests import draws
from tests.cloud.tracebacks import of_cpu_tiers
from tests.hostile_answers import OF_ANY, REFUSED, SELECTED, UNKNOWN_NODES, Answer
from tests.nova.numa.agreement import check_agreement, held_of_nodes
from tests.processes import configuration, record_faults
from tests.processes.clock import Clock
from tests.processes.cloud import OURS as ON_HOSTS
from tests.processes.cloud import Cloud
from tests.processes.configuration import Sections
from tests.processes.daemons import Daemon, free_port
from tests.processes.faulty_placement import (
    CANDIDATES,
    LOOKS,
    NEW_NAMES,
    OF_HOSTS,
    REASONS,
    USAGES,
    FaultyPlacement,
)
from tests.processes.hosts import TWO_NODES, aware
from tests.processes.modes import (
    LOADED,
    MODES,
    Mode,
    api_beside_vendor,
    beside_vendor,
    compute,
    environment,
    services,
    without_scheduler,
)
from tests.processes.schedulers import ask, ask_many, request_spec
from tests.processes.vendor import FUNCTIONS, saw

Requests = list[str]
IS_LONG = "CPU_TIERS_CHAOS" in os.environ
MANY, FEW = (300, 100) if IS_LONG else (100, 20)
IS_WHOLE = IS_LONG or draws.DAYS == 1
LONG_CUTS = 20
FAULTS_OF_HOST = 6
"""As many requests as nova-compute makes in about two rounds of its periodic task."""

FAULTS_OF_API = 3
JUMP_SECONDS = 30
PAUSE_SECONDS = 60
"""After a warning, a worker logs none about the same work for so long."""

TIER = {"quota:cpu_shares_multiplier": "100"}
RECORD = "record of a decision"
TOO_LARGE_MB = 2**30
NO_HOST = "No valid host was found."
REASON = f"{NO_HOST} A host would have room without one of these: {TOO_LARGE_MB} {MEMORY_MB}"


@pytest.fixture(scope="module")
def bare(unscheduled: Cloud) -> Iterator[Cloud]:
    """A cloud without a nova-scheduler."""
    with without_scheduler(unscheduled):
        yield unscheduled


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
    for fault in (record_faults.full_disk, record_faults.pipe, record_faults.folder):
        mode.record.unlink(missing_ok=True)
        with fault(mode):
            requests = MANY if IS_LONG else FEW
            assert len(ask_many(requests, rebuild=True)) == requests
        # In the short form, a worker that warned of the fault before may warn of none now.
        number = check_warnings(mode, RECORD, before=number if IS_LONG else 0)
        if IS_LONG or fault is record_faults.pipe:
            hang_up(mode)
        if IS_LONG:
            time.sleep(PAUSE_SECONDS)
    mode.record.unlink(missing_ok=True)
    mode.wait_until(lambda: ask_many(1, rebuild=True) and mode.record.exists(), "a record")
    lines = filter(None, mode.record.read_text().splitlines())
    assert [json.loads(line)["flavor"] for line in lines]


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
    check_warnings(mode, "look for excess claims")
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


def of_today(mode: Mode, *, other: bool = False) -> None:
    """Skip a test in one of both modes, unless everything is drawn.

    :param other: the test has its turn when the tests without it have none.
    """
    if not IS_WHOLE and (mode.name in draws.in_turn(list(MODES))) == other:
        pytest.skip("has its turn on another day")


@pytest.fixture(scope="module")
def nodes(bare: Cloud, mode: Mode) -> Iterator[str]:
    """A host that reports its NUMA nodes, and reads them from Placement every second."""
    of_today(mode)
    name = f"{mode.name}-nodes"
    often: Sections = {
        "DEFAULT": {"update_resources_interval": 1},
        "compute": {"resource_provider_association_refresh": 1},
    }
    with compute(bare, name, mode.placement, mode.name, aware(True), often):
        yield name


def faults(placement: FaultyPlacement, pattern: str) -> Iterator[AbstractContextManager[Requests]]:
    """Yield the faults of a Placement: lies, and connections that end.

    Of all lies, a part is drawn, and these lies take turns.
    """
    random = Random(draws.SEED)
    lies = [OF_ANY[name] for name in sorted(OF_ANY)]
    for each in (
        [[lie] for lie in lies] if IS_WHOLE else [lies[draws.SEED % draws.DAYS :: draws.DAYS]]
    ):
        yield placement.answers(pattern, *each)
    for _ in range(LONG_CUTS if IS_WHOLE else 1):
        yield placement.cuts(pattern, random)


def test_a_host_over_a_faulty_placement(mode: Mode, nodes: str) -> None:
    """nova-compute goes on, has no error of cpu-tiers, and loses nothing of servers that run.

    A server that is requested meanwhile gets a host or none.
    """
    cloud = mode.cloud
    assert cloud.complaints() == []
    tier = cloud.flavor({**TIER, "hw:numa_nodes": "2"}, vcpus=2)
    running = cloud.boot(tier, host=nodes)
    pinned = cloud.boot(cloud.flavor({"hw:cpu_policy": "dedicated"}, vcpus=2), host=nodes)
    before = cloud.inventories(nodes), cloud.held(running), cloud.held(pinned)
    for fault in faults(mode.placement, OF_HOSTS):
        with fault as requests:
            server = request_meanwhile(cloud, tier, nodes, requests)
        delete_again(cloud, server)
    later = cloud.boot(tier, host=nodes)
    for server in (running, later):
        check_agreement(cloud, server)
        held = held_of_nodes(cloud, server).values()
        assert [node[VCPU_SHARES] for node in held] == [100, 100]
        assert cloud.domain(server, nodes).findtext("cputune/shares") == "200"
    check_agreement(cloud, pinned)
    assert (cloud.inventories(nodes), cloud.held(running), cloud.held(pinned)) == before
    complaints = cloud.complaints()
    assert [line for line in complaints if " ERROR cpu_tiers" in line] == []
    for daemon in cloud.control.services.daemons:
        assert [*of_cpu_tiers(daemon.text.splitlines())] == []
    cloud.forgiven.update(complaints)


def request_meanwhile(cloud: Cloud, flavor: str, host: str, requests: Requests) -> str:
    """Request a server, and wait until it has a host or none, after some faults of Placement."""
    server = cloud.request(flavor, host=host)
    cloud.wait_until(
        lambda: len(requests) >= FAULTS_OF_HOST and cloud.is_settled(server),
        "Placement had faults, and the server a host or none",
    )
    return server


def delete_again(cloud: Cloud, server: str) -> None:
    """Delete a server as often as it takes, as an administrator does.

    Nova gives up a deletion if nova-compute still has a part of an answer that was a lie.
    """

    def is_gone() -> bool:
        servers = cloud.nova.get("/servers/detail").body["servers"]
        shown = {each["id"]: each for each in servers}.get(server)
        if shown is None:
            return True
        if shown["status"] in {"ACTIVE", "ERROR"} and not shown["OS-EXT-STS:task_state"]:
            cloud.nova.ask("DELETE", f"/servers/{server}")
        return False

    cloud.wait_until(is_gone, f"{server} is gone")


def test_nova_api_over_a_faulty_placement(mode: Mode) -> None:
    """A request of a server is refused, or the server gets a host as always."""
    cloud, loaded = mode.cloud, mode.api.text.count(LOADED)
    flavor = cloud.flavor(TIER, vcpus=2)
    for fault in faults(mode.placement, USAGES):
        servers = []
        with fault as requests:
            for _ in range(FAULTS_OF_API):
                try:
                    servers.append(cloud.request(flavor))
                except AssertionError as refusal:
                    assert re.match(r"POST /servers: (403|50\d) ", str(refusal))  # noqa: PT017
        assert len(requests) >= FAULTS_OF_API
        for server in servers:
            cloud.wait_for(server, "ACTIVE")
        cloud.delete(*servers)
    check_server(mode, cloud.boot(flavor))
    with pytest.raises(AssertionError, match=r"403 .*CUSTOM_VCPU_SHARES is over limit of 5000"):
        cloud.request(cloud.flavor({"quota:cpu_shares_multiplier": "6000"}))
    assert mode.api.text.count(LOADED) == loaded


def test_answers_to_nova_scheduler_that_are_cut(mode: Mode) -> None:
    """Without candidates, a server gets no host; what only cpu-tiers asks for is left out.

    After a test that had answers late, a worker asks nothing more for a minute.
    """
    untouched, random = SELECTED["as Placement answers"], Random(draws.SEED)
    with mode.placement.cuts(CANDIDATES, random) as requests:
        for number in range(1, 4):
            assert not selects(mode, untouched)
            assert len(requests) >= number
    with mode.placement.cuts(f"{REASONS}|{LOOKS}|{NEW_NAMES}", random) as requests:

        def is_cut() -> bool:
            assert selects(mode, untouched)
            assert ask_many(1, memory_mb=TOO_LARGE_MB) == [NO_HOST]
            return len(requests) >= 3

        mode.wait_until(is_cut, "answers end before, in and after their heads")
    assert selects(mode, untouched)


def test_a_time_of_day_that_jumps(mode: Mode, right_clock: Clock) -> None:
    """An hour on and an hour back, while requests wait for Placement: all get their answers.

    nova-scheduler has no host until nova-compute has reported the new time of day.
    """
    of_today(mode, other=True)
    cloud, flavor = mode.cloud, mode.cloud.flavor(TIER, vcpus=2)
    servers = [cloud.boot(flavor)]
    for seconds in (3600, 0):
        with ThreadPoolExecutor(1) as thread:
            with mode.placement.stalls(CANDIDATES) as stalled:
                answers = thread.submit(ask_many, 5, memory_mb=TOO_LARGE_MB)
                mode.wait_until(lambda: stalled, "requests wait")
                right_clock.jump(seconds)
            assert {*answers.result(JUMP_SECONDS)} <= {NO_HOST, REASON}
        mode.wait_until(
            lambda: selects(mode, SELECTED["as Placement answers"]), "nova-compute has reported"
        )
        servers.append(cloud.boot(flavor))
        for server in servers:
            check_server(mode, server)


@pytest.fixture
def right_clock(mode: Mode) -> Iterator[Clock]:
    """The clock of all services, which is right after the test."""
    yield mode.cloud.control.clock
    mode.cloud.control.clock.jump(0)


def test_term_ends_each_service(mode: Mode) -> None:
    with ThreadPoolExecutor() as threads:
        assert list(threads.map(Daemon.end, mode.daemons)) == [0, 0, 0]


def test_a_wrapper_that_hides_parameters_keeps_a_service_from_starting(
    bare: Cloud, tmp_path: Path
) -> None:
    """nova-compute and nova-api say which function does not fit, and how to go on.

    tests/nova/test_loading.py has nova-scheduler.
    """
    conf = bare.control.write_conf(tmp_path, {"api": {"refuse_faulty_flavors": True}})
    own: Sections = {"DEFAULT": {"host": "refused", "state_path": tmp_path}}
    of_compute = configuration.write(
        tmp_path / "compute" / "nova.conf", bare.control.common, ON_HOSTS, own
    )

    def check(mode: str, service: str) -> None:
        command = [*beside_vendor("nova-compute"), str(of_compute)]
        if service == "nova-api":
            command = api_beside_vendor(free_port())
        env = {**environment(mode, "plain", conf.parent), **TWO_NODES, "FAKE_NAME": "refused"}
        done = Daemon(name=service, command=command, folder=tmp_path, env=env).run()
        assert done.returncode != 0, done.stdout
        expected = f"{'.'.join(FUNCTIONS[service])} was expected with the parameters "
        assert expected in done.stdout, done.stdout
        (line, *_) = [line for line in done.stdout.splitlines() if expected in line]
        assert "cpu-tiers does not fit Nova 34" in line
        assert "wrap.<locals>.seen, which wraps the function of Nova without" in line
        assert "Without the feature, " in line

    both, modes = ("nova-compute", "nova-api"), draws.in_turn(list(MODES))
    with ThreadPoolExecutor(2) as threads:
        checks = [threads.submit(check, *each) for each in itertools.product(modes, both)]
    for done in checks:
        done.result()
