"""Measure the CPU time of a mixed guest and of a rival that compete for a CPU.

The mixed guest has a dedicated vCPU, alone on CPU 0, and a shared vCPU on CPU 1. The rival has a
shared vCPU on CPU 1. Other processes of the machine take CPU time from both guests alike, so the
ratio of the two guests is valid on a busy machine as well.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import libvirt

from cpu_tiers.libvirt.contract import Guest
from tests.libvirt.cgroup import cpu_cgroups
from tests.libvirt.contest import cpu_seconds, spinning, start, threads
from tests.libvirt.servers import server

Dedicated = Literal["busy", "idle", "real-time"]
"""What the dedicated vCPU does: spin, nothing, or spin with a real-time scheduler."""

RIVAL_WEIGHT = 100

_DEDICATED, _SHARED = frozenset({0}), frozenset({1})
_SECONDS_TO_SETTLE = 3
_REALTIME_US = 500_000
"""Of each second on CPU 0: the vCPU is busy, and the machine stays alive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The CPU time of each vCPU in a window, as a part of a CPU."""

    dedicated: float
    shared: float
    rival: float

    @property
    def ratio(self) -> float:
        """Return the CPU time of the shared vCPU divided by the CPU time of the rival."""
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
    """Return the CPU time of the vCPUs in each window.

    :param folder: where the firmware is built; needs gcc.
    :param weight: of the mixed guest; the rival has 100.
    """
    awake = [1] if dedicated == "idle" else [0, 1]
    with (
        spinning(connection, folder, _guest("mixed", weight, _DEDICATED), awake) as mixed,
        spinning(connection, folder, _guest("rival", RIVAL_WEIGHT), [0]) as rival,
    ):
        start(mixed, awake)
        start(rival, [0])
        if dedicated == "real-time":
            _make_realtime(threads(mixed)[0])
        time.sleep(_SECONDS_TO_SETTLE)
        return [_window(mixed, rival, seconds) for _ in range(count)]


def _window(mixed: libvirt.virDomain, rival: libvirt.virDomain, seconds: float) -> Window:
    before, start = [*cpu_seconds(mixed), *cpu_seconds(rival)], time.monotonic()
    time.sleep(seconds)
    after, end = [*cpu_seconds(mixed), *cpu_seconds(rival)], time.monotonic()
    had = [(late - early) / (end - start) for early, late in zip(before, after, strict=True)]
    return Window(dedicated=had[0], shared=had[1], rival=had[2])


def _guest(name: str, weight: int, pinned: frozenset[int] = frozenset()) -> Guest:
    """Return a guest with a shared vCPU, and a pinned vCPU for each of these CPUs."""
    specs = {"quota:cpu_shares": str(weight)}
    return server(name, cpus=_SHARED, vcpus=1 + len(pinned), pinned=pinned, extra_specs=specs)


def _make_realtime(thread: int) -> None:
    """Give a vCPU a real-time scheduler, as ``<vcpusched>`` does.

    The guest has no ``<vcpusched>``: a kernel with CONFIG_RT_GROUP_SCHED has a real-time budget
    for each cgroup, and libvirt gives none to its cgroups, so it cannot start such a guest.
    """
    for group in reversed(cpu_cgroups(thread)):
        grant = group / "cpu.rt_runtime_us"
        if grant.exists():
            grant.write_text(str(_REALTIME_US))
    os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(1))
