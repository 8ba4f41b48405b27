"""Measure the CPU time of guests that compete for CPUs of this machine.

The guests run a firmware with spinning vCPUs, :file:`spin.S`. Other processes of the machine get
hardly any CPU time, because the guests together outweigh them.
"""

import json
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu
from lxml.builder import E

from cpu_tiers.libvirt.contract import DomainElements, Guest
from cpu_tiers.tools.host.watched_host import WatchedHost
from cpu_tiers.tools.libvirt.domain import BUILT_IN, write_domain
from tests.libvirt.cgroup import (
    PARTITION,
    busy_seconds,
    busy_service,
    cpu_cgroups,
    default_weight,
    outweighing,
)
from tests.libvirt.contestants import SERVICE, Contest

_LINK = "-Wl,--oformat=binary,-Ttext=0,--entry=0,--build-id=none,-N,--no-warn-rwx-segments"
_SECONDS_TO_START = 60
_SECONDS_TO_SETTLE = 3
SECONDS_TO_READ = 0.01
"""How long the clocks of all guests are read."""
_READINGS = 50
"""A machine that takes longer reads so often, and the fastest reading counts."""
EMULATED = not Path("/dev/kvm").exists()
"""Whether QEMU emulates the guests of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContestWindow:
    """What ran in a window of a contest, as numbers of CPUs.

    :param cpus: what each guest received, by the name of the guest.
    :param foreign: what others took of the CPU time that the guests wanted: the other processes of
        the machine, interrupts, and the hypervisor if the machine is virtual. It is at most what
        the others ran, and at most what all guests together lack of their entitlements.
    :param reading: for how many seconds the clocks were read.
    :param missing: what each guest lacks of what was due, as the watch counts it; empty without a
        watch.
    """

    cpus: Mapping[str, float]
    foreign: float
    reading: float = SECONDS_TO_READ
    missing: Mapping[str, float] = field(default_factory=dict)


def delivered(
    connection: libvirt.virConnect,
    folder: Path,
    contest: Contest,
    *,
    seconds: float,
    count: int = 1,
) -> list[dict[str, float]]:
    """Return the CPUs that each guest received, for each window.

    :param folder: where the firmware is built; needs gcc.
    """
    windows = contest_windows(connection, folder, contest, seconds=seconds, count=count)
    return [dict(window.cpus) for window in windows]


def percent(cpus: Mapping[str, float]) -> dict[str, float]:
    """Return the part that each has of what all had, however much others took of the machine."""
    return {name: 100 * amount / sum(cpus.values()) for name, amount in cpus.items()}


def contest_windows(
    connection: libvirt.virConnect,
    folder: Path,
    contest: Contest,
    *,
    seconds: float,
    count: int = 1,
    watched: WatchedHost | None = None,
) -> list[ContestWindow]:
    """Return what ran in each window.

    The guests start in their order. A guest that starts beside much heavier guests takes
    minutes: let the lightest guest be the first one.

    :param folder: where the firmware is built; needs gcc.
    :param watched: a watch of the guests, which counts what is missing in each window.
    """
    with ExitStack() as stack:
        domains = {
            contestant.name: stack.enter_context(
                spinning(connection, folder, contestant.guest, contestant.awake)
            )
            for contestant in contest.contestants
        }
        machines = cpu_cgroups(threads(next(iter(domains.values())))[0])[-1]
        if not EMULATED:  # a slow machine needs the time to start the guests
            stack.enter_context(outweighing(machines))
        for contestant in contest.contestants:
            start(domains[contestant.name], contestant.awake)
            if contestant.busy_emulator:
                _keep_emulator_busy(domains[contestant.name])
        clocks = {name: _clock(domain) for name, domain in domains.items()}
        if contest.service:
            clocks[SERVICE] = _process_clock(
                stack.enter_context(busy_service(machines, contest.service))
            )
        time.sleep(_SECONDS_TO_SETTLE)
        wanted = sum(contest.entitlements(default_weight()).values())

        def window() -> ContestWindow:
            return _window(clocks, contest.cpus, wanted, seconds)

        if watched is None:
            return [window() for _ in range(count)]
        return [_watched_window(watched, window) for _ in range(count)]


def _watched_window(watched: WatchedHost, window: Callable[[], ContestWindow]) -> ContestWindow:
    """Return a window with what the watch counts meanwhile."""
    watched.read()
    before = {guest.domain.name: guest for guest in watched.reading.guests}
    ran = window()
    watched.read()
    missing = {}
    for guest in watched.reading.guests:
        early = before[guest.domain.name]
        seconds = guest.read_at - early.read_at
        missing[guest.domain.name] = (guest.totals.missing - early.totals.missing) / seconds
    return replace(ran, missing=missing)


Clock = Callable[[], float]
"""Returns the seconds of CPU time of a guest or a process."""


def _clock(domain: libvirt.virDomain) -> Clock:
    """Return the clock of a whole guest: vCPUs, QEMU and the threads of QEMU."""
    return lambda: domain.getCPUStats(True)[0]["cpu_time"] / 1e9


def _process_clock(pid: int) -> Clock:
    return lambda: int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def _window(
    clocks: Mapping[str, Clock], cpus: Collection[int], wanted: float, seconds: float
) -> ContestWindow:
    """Return what ran in a window.

    :param wanted: the CPUs that all clocks together would get without others.
    """
    busy = busy_seconds(cpus)
    start, before, first = _read(clocks)
    time.sleep(seconds)
    end, after, last = _read(clocks)
    received = {name: (after[name] - before[name]) / (end - start) for name in clocks}
    lacking = wanted - sum(received.values())
    beside = (busy_seconds(cpus) - busy) / (end - start) - sum(received.values())
    foreign, reading = max(0.0, min(lacking, beside)), max(SECONDS_TO_READ, first, last)
    return ContestWindow(cpus=received, foreign=foreign, reading=reading)


def _read(clocks: Mapping[str, Clock]) -> tuple[float, dict[str, float], float]:
    """Return the time, the clocks at that time, and how long they were read.

    They are read again after an interruption.
    """
    readings = []
    for _ in range(_READINGS):
        now = time.monotonic()
        read = {name: clock() for name, clock in clocks.items()}
        readings.append((time.monotonic() - now, now, read))
        if readings[-1][0] < SECONDS_TO_READ:
            break
    reading, now, read = min(readings, key=lambda each: each[0])
    return now, read, reading


@contextmanager
def spinning(
    connection: libvirt.virConnect, folder: Path, guest: Guest, vcpus: Sequence[int]
) -> Iterator[libvirt.virDomain]:
    """Yield a guest that spins with these vCPUs after its start."""
    loader = E.loader(str(build_firmware(folder, vcpus)), type="rom")
    firmware = {"firmware": lambda _: [E.os(loader)]}
    with running(connection, guest, firmware, emulated=EMULATED) as domain:
        yield domain


@contextmanager
def running(
    connection: libvirt.virConnect,
    guest: Guest,
    plugins: Mapping[str, DomainElements],
    *,
    emulated: bool,
) -> Iterator[libvirt.virDomain]:
    """Yield a paused guest from the XML of cpu-tiers and of the plugins."""
    apart = {"partition": lambda _: [E.resource(E.partition(f"/{PARTITION}"))]}
    xml = write_domain(guest, {**BUILT_IN, **plugins, **apart})
    if emulated:
        xml = xml.replace('<domain type="kvm">', '<domain type="qemu">')
    domain = connection.createXML(xml, libvirt.VIR_DOMAIN_START_PAUSED)
    try:
        yield domain
    finally:
        domain.destroy()


def build_firmware(folder: Path, vcpus: Sequence[int]) -> Path:
    """Return a firmware with which these vCPUs spin."""
    mask = sum(1 << vcpu for vcpu in vcpus)
    return assemble("spin.S", folder / f"spin-{mask}", BUSY=mask)


def assemble(source: str, target: Path, **symbols: int) -> Path:
    """Write the machine code of a file beside this module, and return the path of the code."""
    options = ["-m32", "-nostdlib", "-static", _LINK]
    options += [f"-Wa,--defsym,{name}={value}" for name, value in symbols.items()]
    path = Path(__file__).with_name(source)
    subprocess.run(["gcc", *options, "-o", target, path], check=True)
    return target


def start(domain: libvirt.virDomain, vcpus: Sequence[int]) -> None:
    """Return when all of these vCPUs spin: each vCPU has used some CPU time."""
    domain.resume()
    deadline = time.monotonic() + _SECONDS_TO_START
    while not all(cpu_seconds(domain)[vcpu] > 0.1 for vcpu in vcpus):
        assert time.monotonic() < deadline, f"{domain.name()} did not start"
        time.sleep(0.2)


def cpu_seconds(domain: libvirt.virDomain) -> list[float]:
    """Return the CPU time of each vCPU."""
    return [vcpu[2] / 1e9 for vcpu in domain.vcpus()[0]]


def threads(domain: libvirt.virDomain) -> list[int]:
    """Return the id of each vCPU's thread."""
    return [vcpu["thread-id"] for vcpu in qmp(domain, "query-cpus-fast")]


def _keep_emulator_busy(domain: libvirt.virDomain) -> None:
    """Let QEMU copy a disk, as in live migrations. The copy takes days."""
    for node in ("from", "to"):
        disk = {"driver": "null-co", "node-name": node, "size": 2**60}
        qmp(domain, "blockdev-add", **disk)
    copy = {"job-id": "copy", "device": "from", "target": "to", "sync": "full"}
    qmp(domain, "blockdev-mirror", **copy, granularity=2**26)


def qmp(domain: libvirt.virDomain, command: str, **arguments: object) -> Any:
    """Return the answer of QEMU to a command."""
    request = json.dumps({"execute": command, "arguments": arguments})
    answer = json.loads(libvirt_qemu.qemuMonitorCommand(domain, request, 0))
    assert "return" in answer, answer
    return answer["return"]
