"""What breaks the promises of a host, planted one at a time, and undone afterwards."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.day.guests import DayGuests
from tests.day.host import DayHost
from tests.libvirt.cgroup import busy_service, guest_cgroup, version, weight_file
from tests.libvirt.contest import threads

_LATE = 15.0
"""Seconds for the readings, the scrapes and the evaluations, which are not compressed."""

_WEIGHTS_ARE_READ = 60.0
"""Seconds between two readings of the weights by the watch."""

HURTS = ("CpuTiersPromiseBurnsFast", 60)
"""What fires when guests lack what is due, and its window in minutes."""

_SHORT = ("CpuTiersGuestShort", 30)
_OVERSOLD = ("CpuTiersOversold", 30)
_STANDS = ("CpuTiersWatchStands", 10)
_THROTTLED = ("CpuTiersThrottled", 30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Break:
    """A break of a promise.

    :param alert: what has to fire, and within how many minutes of the rules.
    :param cause: the kind of the audit's finding that names the cause, or a part of the text of
        the alert, which says all if the audit cannot know the cause.
    :param about: the guest that the alert has to name.
    """

    title: str
    plant: Callable[[DayHost, DayGuests], AbstractContextManager[object]]
    alert: tuple[str, int] = HURTS
    cause: str
    about: str = ""

    def seconds(self, factor: int) -> float:
        """Return in how many seconds the alert has to fire while windows are shorter."""
        name, minutes = self.alert
        return minutes * 60 / factor + _LATE + _WEIGHTS_ARE_READ * (name == _OVERSOLD[0])


_UNTIERED = {1: 1, 2: 4}
"""How many servers without a tier hurt the guests with a tier: each has 1024 of 600, or 100."""


@contextmanager
def _untiered(host: DayHost, guests: DayGuests) -> Iterator[None]:
    with ExitStack() as stack:
        for number in range(_UNTIERED[version()]):
            stack.enter_context(guests.another(f"untiered-{number}", None))
        yield


def _untiered_asleep(host: DayHost, guests: DayGuests) -> AbstractContextManager[object]:
    return guests.another("untiered-asleep", None, asleep=True)


def _beyond_the_capacity(host: DayHost, guests: DayGuests) -> AbstractContextManager[object]:
    return guests.another("gold-beyond", 300)


@contextmanager
def written(file: Path, text: str) -> Iterator[None]:
    """Write a file of the kernel, and its earlier content at the end."""
    before = file.read_text()
    file.write_text(text)
    try:
        yield
    finally:
        file.write_text(before)


def _raised(host: DayHost, guests: DayGuests) -> AbstractContextManager[object]:
    return written(weight_file(guests.domains["bronze-1"]), "10000")


def _lowered(host: DayHost, guests: DayGuests) -> AbstractContextManager[object]:
    return written(weight_file(guests.domains["gold-1"]), "2")


def _all_guests(guests: DayGuests) -> Path:
    """Return the cgroup of all guests."""
    return guest_cgroup(guests.domains["gold-1"]).parent


@contextmanager
def _beside_all(host: DayHost, guests: DayGuests) -> Iterator[None]:
    with busy_service(_all_guests(guests), frozenset({0})):
        yield


@contextmanager
def _among_guests(host: DayHost, guests: DayGuests) -> Iterator[None]:
    with busy_service(guest_cgroup(guests.domains["gold-1"]), frozenset({0}), weight=2000):
        yield


_REAL_TIME = """\
import os, time
os.sched_setaffinity(0, {0})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while True:
    end = time.monotonic() + 0.05
    while time.monotonic() < end:
        pass
    time.sleep(0.05)
"""
"""Half of CPU 0, in turns of 50 ms."""


@contextmanager
def _real_time(host: DayHost, guests: DayGuests) -> Iterator[None]:
    with subprocess.Popen([sys.executable, "-c", _REAL_TIME]) as process:
        try:
            yield
        finally:
            process.kill()


def _quota(group: Path, part: float) -> AbstractContextManager[None]:
    quota = group / "cpu.cfs_quota_us"
    if quota.exists():
        return written(quota, str(round(part * 100_000)))
    return written(group / "cpu.max", f"{round(part * 100_000)} 100000")


def _quota_of_a_guest(host: DayHost, guests: DayGuests) -> AbstractContextManager[object]:
    return _quota(guest_cgroup(guests.domains["gold-1"]), 0.05)


def _quota_of_all(host: DayHost, guests: DayGuests) -> AbstractContextManager[object]:
    return _quota(_all_guests(guests), 0.6)


@contextmanager
def _idle(host: DayHost, guests: DayGuests) -> Iterator[None]:
    group = guest_cgroup(guests.domains["gold-1"])
    weight = weight_file(guests.domains["gold-1"])
    before = weight.read_text()
    with written(group / "cpu.idle", "1"):
        yield
    weight.write_text(before)  # the kernel has lost it


@contextmanager
def _moved(host: DayHost, guests: DayGuests) -> Iterator[None]:
    """Put the thread of a vCPU into a cgroup beside all guests; with cgroup v2, the process.

    cgroup v2 keeps the threads of a process together below one cgroup.
    """
    domain = guests.domains["gold-1"]
    (thread,) = threads(domain)
    tasks, moved = ("tasks", "tasks") if version() == 1 else ("cgroup.threads", "cgroup.procs")
    before = {path: path.read_text().split() for path in guest_cgroup(domain).rglob(tasks)}
    (own,) = (path.parent for path, numbers in before.items() if str(thread) in numbers)
    emulator = own.with_name("emulator")
    outside = _all_guests(guests).with_name("outside-of-guests")
    outside.mkdir()
    try:
        with subprocess.Popen(["sleep", "infinity"]) as process:  # systemd ends an empty scope
            (emulator / "cgroup.procs").write_text(str(process.pid))
            (outside / moved).write_text(str(thread))
            try:
                yield
            finally:
                (emulator / moved).write_text(str(thread))
                process.kill()
        for path, numbers in before.items():
            for number in numbers:
                with suppress(ProcessLookupError):  # the thread has ended
                    path.write_text(number)
    finally:
        outside.rmdir()


@contextmanager
def _watch_stands(host: DayHost, guests: DayGuests) -> Iterator[None]:
    os.kill(host.watch.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(host.watch.pid, signal.SIGCONT)


@contextmanager
def _watch_ended(host: DayHost, guests: DayGuests) -> Iterator[None]:
    host.watch.stop()
    try:
        yield
    finally:
        host.start_watch()


@contextmanager
def _unknown_to_libvirt(host: DayHost, guests: DayGuests) -> Iterator[None]:
    """Run a QEMU by hand, as no libvirt knows it."""
    command = ["qemu-system-x86_64", "-uuid", "5c6a9d0e-39ad-4d1c-a7a9-0c1f2a3b4c5d"]
    command += ["-S", "-machine", "pc", "-display", "none", "-nodefaults", "-m", "32"]
    with subprocess.Popen(command) as process:
        try:
            yield
        finally:
            process.kill()


BREAKS = (
    Break(title="a busy server without a tier", plant=_untiered, cause="untiered"),
    Break(title="the watch hangs", plant=_watch_stands, alert=_STANDS, cause="has not read"),
    Break(title="a process beside all guests", plant=_beside_all, cause="busy"),
    Break(
        title="a quota on a Gold guest by hand",
        plant=_quota_of_a_guest,
        alert=_THROTTLED,
        cause="quota",
        about="gold-1",
    ),
    Break(title="a real-time process", plant=_real_time, cause="real-time"),
    Break(title="the watch has ended", plant=_watch_ended, alert=_STANDS, cause="has not read"),
    Break(title="a process among the guests", plant=_among_guests, cause="foreign"),
    Break(
        title="cpu.idle of a Gold guest", plant=_idle, alert=_SHORT, cause="idle", about="gold-1"
    ),
    Break(title="a quota on all guests", plant=_quota_of_all, cause="quota"),
    Break(
        title="a sleeping server without a tier",
        plant=_untiered_asleep,
        alert=_OVERSOLD,
        cause="oversold",
    ),
    Break(title="the weight of a Bronze guest raised", plant=_raised, cause="weight"),
    Break(
        title="a guest that libvirt does not know",
        plant=_unknown_to_libvirt,
        alert=("CpuTiersGuestsUnwatched", 35),
        cause="libvirt does not know the guest",
    ),
    Break(title="the weight of a Gold guest lowered", plant=_lowered, cause="weight"),
    Break(
        title="more shares sold than the host has",
        plant=_beyond_the_capacity,
        alert=_OVERSOLD,
        cause="oversold",
    ),
    Break(
        title="the thread of a vCPU in another cgroup",
        plant=_moved,
        alert=_SHORT,
        cause="thread-cgroup" if version() == 1 else "no-weight",
        about="gold-1",
    ),
)
"""Pages and tickets take turns: a break begins when its own alert is off."""
