"""``cpu-tiers host audit`` of running QEMU guests with changed weights."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import libvirt
import pytest
from lxml.builder import E
from prometheus_client.parser import text_string_to_metric_families

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.placement.records import Consumer, Inventories
from cpu_tiers.tools.cgroup.host import read_host
from cpu_tiers.tools.frame.app import main
from cpu_tiers.tools.host import audit_evidence
from cpu_tiers.tools.libvirt.connection import set_weights
from cpu_tiers.tools.libvirt.domain import BUILT_IN, write_domain
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import embedded_placement
from cpu_tiers.tools.tiers.domain import Domain, HostCgroups
from tests.libvirt.cgroup import (
    PARTITION,
    busy_service,
    cpu_cgroups,
    default_weight,
    freezer_file,
    guest_cgroup,
    nested_partition,
    outweighing,
    weight_file,
)

_LINK = "-Wl,--oformat=binary,-Ttext=0,--entry=0,--build-id=none,-N,--no-warn-rwx-segments"
_CONF = "[compute]\ncpu_shared_set = 0-1\n"

Audit = Callable[..., dict[tuple[str, str], dict[str, Any]]]
Start = Callable[..., libvirt.virDomain]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A firmware with which vCPU 0 spins."""
    path = tmp_path_factory.mktemp("firmware") / "spin"
    source = Path(__file__).with_name("spin.S")
    options = ("-m32", "-nostdlib", "-static", _LINK, "-Wa,--defsym,BUSY=1")
    subprocess.run(["gcc", *options, "-o", path, source], check=True)
    return path


@pytest.fixture
def start(hypervisor: libvirt.virConnect, kvm: bool, firmware: Path) -> Iterator[Start]:
    """Start a guest of one vCPU, which is to spin on its CPU when it is resumed."""
    running, kept = [], []

    def start(
        name: str, shares: int, *, stored: bool = False, cpu: int = 0, partition: str = ""
    ) -> libvirt.virDomain:
        specs = {"quota:cpu_shares": str(shares)}
        flavor = Flavor(name=name, vcpus=1, memory_mb=32, extra_specs=specs)
        host = ComputeHost(cells=(), cpu_shared_set=CpuSet({cpu}))
        place = [E.resource(E.partition(partition))] if partition else []
        boots = {"firmware": lambda _: [E.os(E.loader(str(firmware), type="rom")), *place]}
        guest = Guest(name=f"audit-{name}", flavor=flavor, arch="x86_64", host=host)
        xml = write_domain(guest, {**BUILT_IN, **boots})
        if not kvm:
            xml = xml.replace('<domain type="kvm">', '<domain type="qemu">')
        if stored:
            domain = hypervisor.defineXML(xml)
            running.append(domain)
            kept.append(domain)
            domain.createWithFlags(libvirt.VIR_DOMAIN_START_PAUSED)
        else:
            domain = hypervisor.createXML(xml, libvirt.VIR_DOMAIN_START_PAUSED)
            running.append(domain)
        return domain

    yield start
    for domain in running:
        with suppress(libvirt.libvirtError):  # it ended in the test
            domain.destroy()
        if domain in kept:
            domain.undefine()


@pytest.fixture
def audit(
    hypervisor: libvirt.virConnect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Audit:
    """Run an audit, and return what it finds of the guests here, by guest and kind."""

    class Kept:
        """The session's connection: an embedded driver can be opened some ten times only."""

        def __getattr__(self, name: str) -> object:
            return (lambda: None) if name == "close" else getattr(hypervisor, name)

    monkeypatch.setattr(libvirt, "open", lambda _: Kept())
    monkeypatch.setattr(libvirt, "openReadOnly", lambda _: Kept())
    conf = tmp_path / "nova.conf"
    conf.write_text(_CONF)

    def audit(*options: str, status: int) -> dict[tuple[str, str], dict[str, Any]]:
        command = ["host", "audit", "--connect", hypervisor.getURI(), "-f", "json"]
        # What else runs on this machine, and below this machine, is not of interest.
        command += ["--ignore", "outweighed", "--ignore", "steal"]
        assert main(["--config-file", str(conf), *command, *options]) == status
        rows = json.loads(capsys.readouterr().out)
        return {(row["where"].removeprefix("guest audit-"), row["kind"]): row for row in rows}

    return audit


def test_weights_that_somebody_changed_are_found_and_mended(start: Start, audit: Audit) -> None:
    start("right", 100)
    behind, through = start("behind", 50), start("through", 25, stored=True)
    weight_file(behind).write_text("400")
    through.setSchedulerParametersFlags({"cpu_shares": 77}, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    found = audit("--interval", "0", status=3)
    assert {key: row["found"] for key, row in found.items()} == {
        ("behind", "weight"): "its cgroup has weight 400, it must have weight 50",
        # 100 + 400 + 77 of the 400 shares of CPU 0; nobody has to leave
        (
            "CPU 0",
            "oversold",
        ): "577 shares compete on these CPUs, whose part of the shares that the"
        " host sells is 400: while all are busy, a share keeps 69.3% of what it is sold as",
    }  # libvirt changes XML and cgroup: without Nova's flavor nobody can tell
    assert found["behind", "weight"]["fixed"] is False

    found = audit("--interval", "0", "--fix", status=0)
    assert found["behind", "weight"]["fixed"] is True
    assert weight_file(behind).read_text() == "50\n"
    assert behind.schedulerParameters()["cpu_shares"] == 50
    assert weight_file(through).read_text() == "77\n"  # not touched
    assert audit("--interval", "0", status=0) == {}


def test_a_weight_that_is_not_the_flavors(
    start: Start, audit: Audit, hypervisor: libvirt.virConnect
) -> None:
    domain = start("nova", 100, stored=True)
    metadata = (
        '<instance><flavor name="gold"><extraSpecs><extraSpec name="quota:cpu_shares_multiplier">'
        "100</extraSpec></extraSpecs></flavor></instance>"
    )
    domain.setMetadata(
        libvirt.VIR_DOMAIN_METADATA_ELEMENT,
        metadata,
        "nova",
        "http://openstack.org/xmlns/libvirt/nova/1.1",
        libvirt.VIR_DOMAIN_AFFECT_LIVE,
    )
    for when in (libvirt.VIR_DOMAIN_AFFECT_LIVE, libvirt.VIR_DOMAIN_AFFECT_CONFIG):
        domain.setSchedulerParametersFlags({"cpu_shares": 30}, when)
    found = audit("--interval", "0", "--fix", status=0)
    assert found["nova", "weight"]["found"] == (
        "its XML has weight 30, its flavor weight 100;"
        " its cgroup has weight 30, it must have weight 100"
    )
    assert weight_file(domain).read_text() == "100\n"
    for flags in (0, libvirt.VIR_DOMAIN_XML_INACTIVE):
        assert "<shares>100</shares>" in domain.XMLDesc(flags)


def test_delivered_against_the_floor(start: Start, audit: Audit, tmp_path: Path) -> None:
    gold, bronze = start("gold", 400), start("bronze", 100)
    names = {gold.UUIDString(): "gold", bronze.UUIDString(): "bronze"}
    spin(gold, bronze)
    time.sleep(2)
    metrics, picture = tmp_path / "audit.prom", tmp_path / "host.svg"
    options = ("--interval", "5", "--ignore", "short", "--prometheus", str(metrics))
    # CPU 0 carries 500 shares, and its part is 400; without Bronze it would carry 400. The host
    # sells 800, so that only what else runs on this machine can make the host oversold.
    found = audit(*options, "--svg", str(picture), status=3)
    assert found.keys() - {("host", "oversold")} == {("CPU 0", "oversold"), ("bronze", "oversold")}
    values = read_metrics(metrics, names)
    # 400 and 100 of 500 of one CPU; what else runs on the machine takes from both alike
    assert values["floor_cpus"] == values["entitlement_cpus"] == {"gold": 0.8, "bronze": 0.2}
    # all the time; the kernel counts a wait when it is over
    assert all(0.6 < wanted <= 1.0 for wanted in values["wanted_cpus"].values())
    delivered = values["delivered_cpus"]
    assert delivered["gold"] / delivered["bronze"] == pytest.approx(4, rel=0.1)
    assert "<svg" in picture.read_text()

    weight_file(gold).write_text("100")  # it gets half at most, 0.5 of 0.8
    found = audit("--interval", "5", status=3)
    assert {("gold", "weight"), ("gold", "short")} <= set(found)


def test_nothing_is_due_to_a_guest_that_sleeps(start: Start, audit: Audit, tmp_path: Path) -> None:
    sleeper = start("sleeper", 100)
    metrics = tmp_path / "audit.prom"
    assert audit("--interval", "2", "--prometheus", str(metrics), status=0) == {}
    values = read_metrics(metrics, {sleeper.UUIDString(): "sleeper"})
    assert values["floor_cpus"] == {"sleeper": 1.0}
    assert values["due_cpus"] == pytest.approx({"sleeper": 0.0}, abs=0.02)


def test_a_guest_that_ends_meanwhile(
    start: Start, audit: Audit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    start("stays", 100)
    ends = start("ends", 100)

    def end_and_read(domains: Collection[Domain]) -> HostCgroups:
        ends.destroy()
        return read_host(domains)

    monkeypatch.setattr(audit_evidence, "read_host", end_and_read)
    assert audit("--interval", "0", status=0) == {}
    assert "Guest audit-ends ended during the audit." in caplog.text


def test_a_thread_that_is_not_scheduled_by_weight(start: Start, audit: Audit) -> None:
    domain = start("idle", 100)
    thread = vcpu_thread(domain)
    os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    found = audit("--interval", "0", status=3)
    assert found["idle", "scheduler"]["found"].endswith(" is SCHED_IDLE")


def test_changes_made_behind_libvirt(start: Start, audit: Audit) -> None:
    domain = start("changed", 100)
    group, thread = guest_cgroup(domain), vcpu_thread(domain)
    idle, inner = group / "cpu.idle", group / "emulator" / weight_file(domain).name
    quota = group / "vcpu0" / ("cpu.max" if inner.name == "cpu.weight" else "cpu.cfs_quota_us")
    before = inner.read_text()
    assert audit("--interval", "0", status=0) == {}

    with process_beside(domain) as foreign:
        quota.write_text("20000")
        inner.write_text("77")
        idle.write_text("1")
        (group / "emulator" / thread_file(domain)).write_text(str(thread))
        set_cpus(domain, "1")
        found = audit("--interval", "0", "--fix", status=3)
        assert set(found) == {
            ("changed", "affinity"),
            ("changed", "idle"),
            ("changed", "inner-weight"),
            ("changed", "quota"),
            ("changed", "thread-cgroup"),
            (f"cgroup {foreign}", "foreign"),
            ("host", "oversold"),
        }
    (group / "vcpu0" / thread_file(domain)).write_text(str(thread))
    set_cpus(domain, "0")
    quota.write_text("max" if quota.name == "cpu.max" else "-1")
    inner.write_text(before)
    idle.write_text("0")  # the kernel has lost the weight
    found = audit("--interval", "0", "--fix", status=0)
    assert set(found) == {("changed", "weight"), ("host", "oversold")}
    assert all(row["fixed"] for row in found.values())
    assert weight_file(domain).read_text() == "100\n"
    assert audit("--interval", "0", status=0) == {}


def test_a_process_that_passes_for_qemu(start: Start, audit: Audit) -> None:
    domain = start("behind", 50)
    weight_file(domain).write_text("400")
    # In a cgroup without a weight: the guest would have no weight to compare.
    command = ["sh", "-c", "sleep 60; :", "qemu", "-uuid", domain.UUIDString()]
    with subprocess.Popen(command) as process:
        found = audit("--interval", "0", status=3)
        process.kill()
    assert set(found) == {("behind", "weight")}


def test_a_stopped_qemu_is_left_out_alone(start: Start, audit: Audit, tmp_path: Path) -> None:
    runs, stops = start("runs", 100), start("stops", 100)
    names = {runs.UUIDString(): "runs", stops.UUIDString(): "stops"}
    spin(runs)
    pid = int((guest_cgroup(stops) / "emulator" / thread_file(stops)).read_text().split()[0])
    # nova-compute asks for statistics, and libvirt waits for QEMU with the job of the domain.
    asks = threading.Thread(target=stops.vcpus)
    metrics = tmp_path / "audit.prom"
    os.kill(pid, signal.SIGSTOP)
    try:
        asks.start()
        begin = time.monotonic()
        options = ("--ignore", "short", "--prometheus", str(metrics))
        found = audit("--interval", "1", *options, status=3)
        assert time.monotonic() - begin < 15  # libvirt alone would take 30
    finally:
        os.kill(pid, signal.SIGCONT)
        asks.join()
    assert {key: row["found"][:37] for key, row in found.items()} == {
        ("stops", "unread"): f"its QEMU process {pid} is stopped, so its"[:37]
    }
    assert set(read_metrics(metrics, names)["delivered_cpus"]) == {"runs"}


def test_a_busy_process_is_named(start: Start, audit: Audit) -> None:
    # Two CPUs are sold for 800 shares: 400 as one CPU, of which the process takes half.
    domain = start("short", 400)
    spin(domain)
    with busy_service(cpu_cgroups(vcpu_thread(domain))[-1], frozenset({0})) as pid:
        found = audit("--interval", "2", status=3)
    text = found[f"process {pid}", "busy"]["found"]
    assert text.startswith("process 'sh' in cgroup /cputiers")


def test_a_service_beside_few_guests_is_named(start: Start, audit: Audit) -> None:
    """The guests of CPU 0 have an eighth of the weight of all, and the service all of its own."""
    few, many = start("few", 100), start("many", 700, cpu=1)
    spin(few, many)
    beside = guest_cgroup(few).parent
    with (
        outweighing(beside, default_weight()),
        busy_service(beside, frozenset({0}), weight=default_weight()) as pid,
    ):
        wait_until_robbed(few)
        found = audit("--interval", "3", status=3)
    assert ("few", "short") in found
    assert "in cgroup /cputiers" in found[f"process {pid}", "busy"]["found"]


def test_a_frozen_guest_is_named(start: Start, audit: Audit) -> None:
    domain = start("frozen", 100)
    spin(domain)
    file = freezer_file(domain)
    thaw = file.read_text()
    file.write_text("FROZEN" if file.name == "freezer.state" else "1")
    try:
        found = audit("--interval", "1", status=3)
    finally:
        file.write_text(thaw)
    assert set(found) == {("frozen", "frozen")}
    assert ("frozen", "frozen") not in audit("--interval", "1", "--ignore", "short", status=0)


def test_a_guest_in_a_partition_beside_guests_is_named(start: Start, audit: Audit) -> None:
    """25 shares in a partition of the default weight compete as 1024, or as 100 with v2."""
    domain = start("beside", 100)
    with nested_partition(domain) as name:
        inside = start("inside", 25, partition=f"/{name}")
        found = audit("--interval", "0", status=3)
        inside.destroy()
        time.sleep(0.5)
    (where,) = (where for where, kind in found if kind == "partition")
    assert where.endswith("/tenant.partition")
    assert {kind for _, kind in found} <= {"partition", "oversold"}


def test_a_node_that_carries_more_than_its_part(
    start: Start, audit: Audit, tmp_path: Path
) -> None:
    """Two CPUs are sold for 800 shares; the guests of CPU 0, as of a NUMA node, have 700."""
    weights = {"victim": 100, "a1": 200, "a2": 200, "a3": 200}
    guests = {name: start(name, weight) for name, weight in weights.items()}
    found = audit("--interval", "0", status=3)  # before anybody is hurt
    assert found["CPU 0", "oversold"]["found"].startswith("700 shares compete on these CPUs")
    assert {where for where, _ in found} == {"CPU 0", "a1", "victim"}
    spin(*guests.values())
    time.sleep(2)
    metrics = tmp_path / "audit.prom"
    found = audit("--interval", "6", "--prometheus", str(metrics), status=3)
    names = {domain.UUIDString(): name for name, domain in guests.items()}
    values = read_metrics(metrics, names)
    # 100 of 400 of CPU 0 are sold and due, and 100 of 700 is what the kernel gives
    assert values["due_cpus"]["victim"] == pytest.approx(0.25, rel=0.05)
    assert values["delivered_cpus"]["victim"] < 0.16
    assert ("victim", "short") in found


def test_small_and_short_processes_are_named_together(
    start: Start, audit: Audit, tmp_path: Path
) -> None:
    """Thirty processes of a thirtieth of a CPU, and a loop of processes that live shortly.

    In some whole runs of the CI the second audit was empty. What it measured is printed then.
    """
    metrics = tmp_path / "audit.prom"
    domain = start("short", 400)
    spin(domain)
    loop, fork = "while :; do :; done", "while :; do /bin/true; done"
    for scripts, many in (([loop] * 30, True), ([fork] * 2, False)):
        with ExitStack() as stack:
            for script in scripts:
                command = ["taskset", "-c", "0", "sh", "-c", script]
                process = stack.enter_context(subprocess.Popen(command))
                stack.callback(process.kill)
            wait_until_robbed(domain)
            try:
                found = audit("--interval", "3", "--prometheus", str(metrics), status=3)
            finally:
                sys.stderr.write(metrics.read_text())
        texts = [row["found"] for (_, kind), row in found.items() if kind == "busy"]
        assert any("'sh'" in text and (" small processes " in text) == many for text in texts)


def test_a_process_in_the_cgroup_of_a_guest(start: Start, audit: Audit) -> None:
    domain = start("robbed", 400)
    spin(domain)
    group = guest_cgroup(domain) / "emulator"
    script = f"echo $$ > {group}/cgroup.procs; while :; do :; done"
    with subprocess.Popen(["taskset", "-c", "0", "sh", "-c", script]) as process:
        time.sleep(1)
        found = audit("--interval", "2", status=3)
        process.kill()
    where = f"process {process.pid}"
    assert "with a part of the weight of guest" in found[where, "foreign"]["found"]
    assert (where, "busy") not in found


def test_allocations_in_placement(
    start: Start, audit: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    right, wrong = start("right", 100), start("wrong", 50)
    held = {right.UUIDString(): 100, wrong.UUIDString(): 25}
    with embedded_placement() as client:
        report(client, "compute1", held)

        @contextmanager
        def connect(*_: object, **__: object) -> Iterator[PlacementClient]:
            yield client

        monkeypatch.setattr(audit_evidence, "connect", connect)
        found = audit("--interval", "0", "--hostname", "compute1", status=3)
        assert {key: row["found"] for key, row in found.items()} == {
            ("wrong", "claim"): f"it requests 50 {VCPU_SHARES}, and 25 is allocated to it"
        }
        found = audit("--interval", "0", "--hostname", "compute2", status=3)
    assert list(found) == [("host compute2", "unread")]


def test_fix_without_permission_changes_nothing(
    start: Start, audit: Audit, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    domain = start("behind", 50)
    weight_file(domain).write_text("400")

    def refuse(_: str) -> libvirt.virConnect:
        raise libvirt.libvirtError("Permission denied")

    monkeypatch.setattr(libvirt, "open", refuse)
    found = audit("--interval", "0", "--fix", status=3)
    assert found["behind", "weight"]["fixed"] is False
    assert "Not all weights are set" in caplog.text
    assert weight_file(domain).read_text() == "400\n"


def test_a_refusal_of_libvirt_is_reported_for_each_guest(audit: Audit, start: Start) -> None:
    domain = start("there", 100)
    there, gone = domain.UUIDString(), "11111111-1111-4111-8111-111111111111"
    failed = set_weights("", {gone: 10, there: 300_000})
    assert "Domain not found" in failed[gone]
    assert "300000" in failed[there]
    assert weight_file(domain).read_text() == "100\n"


def report(client: PlacementClient, host: str, held: dict[str, int]) -> None:
    """Have a host with 200 shares, of which consumers hold these."""
    client.ensure_names([VCPU_SHARES])
    provider = client.create_provider(host).uuid
    by_class = {VCPU_SHARES: Inventory(total=200, max_unit=200)}
    client.set_inventories(provider, Inventories(generation=0, by_class=by_class))
    client.set_consumers(
        *(
            Consumer(
                uuid=uuid,
                allocations=Portion.by_id({provider: {VCPU_SHARES: amount}}),
                project_id="project",
                user_id="user",
            )
            for uuid, amount in held.items()
        )
    )


def read_metrics(path: Path, names: dict[str, str]) -> dict[str, dict[str, float]]:
    """Return the metrics of guests, by what they say and by guest."""
    values: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(path.read_text()):
        for sample in family.samples:
            if sample.labels.get("uuid") in names:
                about = family.name.removeprefix("cpu_tiers_guest_")
                values.setdefault(about, {})[names[sample.labels["uuid"]]] = sample.value
    return values


def spin(*domains: libvirt.virDomain) -> None:
    """Let guests run, and wait until each does."""
    for domain in domains:
        domain.resume()
    deadline = time.monotonic() + 60
    while not all(domain.vcpus()[0][0][2] > 1e8 for domain in domains):
        assert time.monotonic() < deadline, "the guests do not start"
        time.sleep(0.2)


def wait_until_robbed(domain: libvirt.virDomain) -> None:
    """Wait until the kernel gives a spinning guest less than two thirds of its CPU."""
    deadline, parts = time.monotonic() + 60, list[float]()
    while not parts or parts[-1] > 2 / 3:
        assert time.monotonic() < deadline, f"nobody takes from the guest: {parts}"
        began, ran = time.monotonic(), domain.vcpus()[0][0][2]
        time.sleep(1)
        spent = (domain.vcpus()[0][0][2] - ran) / 1e9
        parts.append(spent / (time.monotonic() - began))


def vcpu_thread(domain: libvirt.virDomain) -> int:
    """The thread of vCPU 0."""
    return int((guest_cgroup(domain) / "vcpu0" / thread_file(domain)).read_text().split()[0])


def set_cpus(domain: libvirt.virDomain, cpus: str) -> None:
    """Change the CPUs of the threads of a guest; the cpuset controller of v1 is elsewhere."""
    group = Path(str(guest_cgroup(domain)).replace("/cgroup/cpu/", "/cgroup/cpuset/"))
    for name in ("emulator", "vcpu0"):
        (group / name / "cpuset.cpus").write_text(cpus)


@contextmanager
def process_beside(domain: libvirt.virDomain) -> Iterator[str]:
    """Run a process in a cgroup of the largest weight beside a guest; return the path."""
    group = guest_cgroup(domain).with_name(f"{PARTITION}-foreign")
    group.mkdir()
    try:
        with outweighing(group), subprocess.Popen(["sleep", "60"]) as process:
            (group / "cgroup.procs").write_text(str(process.pid))
            yield f"/{group.relative_to(cpu_cgroups(process.pid)[-1].parent)}"
            process.kill()
    finally:
        group.rmdir()


def thread_file(domain: libvirt.virDomain) -> str:
    """The file that lists the threads of a cgroup."""
    return "cgroup.threads" if weight_file(domain).name == "cpu.weight" else "tasks"
