"""A mixed guest and a rival compete for one CPU: what is each given?

Both run a firmware whose vCPUs spin, :file:`spin.S`. The mixed guest has one
dedicated vCPU, alone on CPU 0, and one shared vCPU on CPU 1; the rival has one
shared vCPU there. What else runs on the machine takes from both alike, so the
ratio of the two stands when it is busy, too.
"""

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import libvirt
import libvirt_qemu
from lxml.builder import E

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.libvirt.domain import BUILT_IN, domain_xml
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning

Dedicated = Literal["busy", "idle", "real-time"]
"""What the dedicated vCPU does: spin, nothing, or spin with a real-time scheduler."""

RIVAL_WEIGHT = 100

_MEMORY_MB = 32
_HOST = ComputeHost(
    cells=(ComputeCell(id=0, shared=CpuSet({1}), dedicated=CpuSet({0}), memory_mb=_MEMORY_MB),),
    cpu_shared_set=CpuSet({1}),
)
_MIXED = GuestTopology(
    cells=(GuestCell(id=0, cpuset=CpuSet({1}), pcpuset=CpuSet({0}), memory_mb=_MEMORY_MB),),
    cpu_policy="mixed",
)
_PINNING = Pinning(cells=(CellPinning(host_cell=0, cpu_pinning={0: 0}),))
_LINK = "-Wl,--oformat=binary,-Ttext=0,--entry=0,--build-id=none,-N,--no-warn-rwx-segments"
_SECONDS_TO_START = 60
_SECONDS_TO_SETTLE = 3
_REALTIME_US = 500_000
"""Of each second on CPU 0: the vCPU is busy, and the machine stays alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """How much of a CPU, of 1.0, each vCPU had over some seconds."""

    dedicated: float
    shared: float
    rival: float

    @property
    def ratio(self) -> float:
        """Return what the shared vCPU had for each second of its rival."""
        return self.shared / self.rival


def windows(
    connection: libvirt.virConnect,
    folder: Path,
    *,
    weight: int,
    dedicated: Dedicated,
    seconds: float,
    count: int = 1,
) -> list[Window]:
    """Return what the vCPUs had in one window after another.

    :param folder: where the firmware is built; needs gcc.
    :param weight: of the mixed guest; the rival has 100.
    """
    spinning = [1] if dedicated == "idle" else [0, 1]
    with (
        _running(connection, _mixed(weight), _firmware(folder, spinning)) as mixed,
        _running(connection, _guest("rival", 1, RIVAL_WEIGHT), _firmware(folder, [0])) as rival,
    ):
        _wait(mixed, spinning)
        _wait(rival, [0])
        if dedicated == "real-time":
            _make_realtime(mixed)
        time.sleep(_SECONDS_TO_SETTLE)
        return [_window(mixed, rival, seconds) for _ in range(count)]


def _window(mixed: libvirt.virDomain, rival: libvirt.virDomain, seconds: float) -> Window:
    before, start = [*_cpu_seconds(mixed), *_cpu_seconds(rival)], time.monotonic()
    time.sleep(seconds)
    after, end = [*_cpu_seconds(mixed), *_cpu_seconds(rival)], time.monotonic()
    had = [(late - early) / (end - start) for early, late in zip(before, after, strict=True)]
    return Window(dedicated=had[0], shared=had[1], rival=had[2])


def _guest(name: str, vcpus: int, weight: int) -> Guest:
    flavor = Flavor(
        name=name,
        vcpus=vcpus,
        memory_mb=_MEMORY_MB,
        extra_specs={"quota:cpu_shares": str(weight)},
    )
    return Guest(name=name, flavor=flavor, arch="x86_64", host=_HOST)


def _mixed(weight: int) -> Guest:
    return replace(_guest("mixed", 2, weight), topology=_MIXED, pinning=_PINNING)


def _firmware(folder: Path, spinning: Sequence[int]) -> Path:
    """Return a firmware with which these vCPUs spin."""
    mask = sum(1 << vcpu for vcpu in spinning)
    firmware = folder / f"spin-{mask}"
    options = ("-m32", "-nostdlib", "-static", _LINK, f"-Wa,--defsym,BUSY={mask}")
    source = Path(__file__).with_name("spin.S")
    subprocess.run(["gcc", *options, "-o", firmware, source], check=True)
    return firmware


@contextmanager
def _running(
    connection: libvirt.virConnect, guest: Guest, firmware: Path
) -> Iterator[libvirt.virDomain]:
    boots = {"firmware": lambda _: [E.os(E.loader(str(firmware), type="rom"))]}
    domain = connection.createXML(domain_xml(guest, {**BUILT_IN, **boots}))
    try:
        yield domain
    finally:
        domain.destroy()


def _wait(domain: libvirt.virDomain, spinning: Sequence[int]) -> None:
    """Return when all that should spin do: each has used some CPU."""
    deadline = time.monotonic() + _SECONDS_TO_START
    while not all(_cpu_seconds(domain)[vcpu] > 0.1 for vcpu in spinning):
        assert time.monotonic() < deadline, f"{domain.name()} did not start"
        time.sleep(0.2)


def _cpu_seconds(domain: libvirt.virDomain) -> list[float]:
    """Return the CPU time of each vCPU."""
    return [vcpu[2] / 1e9 for vcpu in domain.vcpus()[0]]


def _make_realtime(domain: libvirt.virDomain) -> None:
    """Give vCPU 0 a real-time scheduler, as ``<vcpusched>`` does.

    Not by that element: a kernel that grants real time to each cgroup by
    itself (CONFIG_RT_GROUP_SCHED) gives none to those that libvirt makes, and
    libvirt then fails to start the guest.
    """
    answer = libvirt_qemu.qemuMonitorCommand(domain, '{"execute": "query-cpus-fast"}', 0)
    thread = json.loads(answer)["return"][0]["thread-id"]
    for group in reversed(_cpu_cgroups(thread)):
        (group / "cpu.rt_runtime_us").write_text(str(_REALTIME_US))
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))


def _cpu_cgroups(thread: int) -> list[Path]:
    """Return the cgroups of a thread that grant real time, innermost first."""
    root = Path("/sys/fs/cgroup/cpu")
    lines = Path(f"/proc/{thread}/cgroup").read_text().splitlines()
    paths = [
        line.split(":", 2)[2] for line in lines if line.split(":")[1] in ("cpu", "cpu,cpuacct")
    ]
    groups = [root / path.lstrip("/") for path in paths]
    return [
        group
        for innermost in groups
        for group in (innermost, *innermost.parents)
        if group != root and (group / "cpu.rt_runtime_us").exists()
    ]
