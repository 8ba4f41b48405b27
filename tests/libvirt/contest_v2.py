"""Measure the contests on cgroup v2, inside a guest with a kernel of Debian.

Cgroups with the weights of the guests take the place of the guests. :file:`spin_v2.sh` makes the
cgroups in the layout that libvirt uses on a host with systemd. The guest is emulated. A slow CPU
does not matter: the scheduler divides slow and fast CPUs alike.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import libvirt

from cpu_tiers.tools.host.checks.delivery import delivery_of
from cpu_tiers.tools.tiers.contenders import Contender
from cpu_tiers.tools.tiers.domain import CpuTime
from tests.libvirt.cgroup import cpu_cgroups, outweighing
from tests.libvirt.contest import ContestWindow, running, threads
from tests.libvirt.contestants import SERVICE, Contest
from tests.libvirt.linux_guest import linux_elements, new_root, wait_until_done
from tests.libvirt.promises import vcpu_rates
from tests.libvirt.servers import server

DEFAULT_WEIGHT = 100

_SECONDS_TO_BOOT = 120
_SECONDS_TO_SETTLE = 3
_SECONDS_TO_CHANGE = 20
"""How long the guest may take to end a contest and to begin the next."""


def delivered_v2(
    connection: libvirt.virConnect, folder: Path, contest: Contest, *, seconds: int, count: int = 1
) -> list[dict[str, float]]:
    """Return the CPUs that each guest received, for each window."""
    (windows,) = contest_windows_v2(connection, folder, [contest], seconds=seconds, count=count)
    return [dict(window.cpus) for window in windows]


def contest_windows_v2(
    connection: libvirt.virConnect,
    folder: Path,
    contests: Sequence[Contest],
    *,
    seconds: int,
    count: int = 1,
) -> list[list[ContestWindow]]:
    """Return what ran in each window of each contest, one contest after the other.

    ``foreign`` of a window is what all threads together lack: interrupts and the kernel take it.
    """
    root, console = new_root(folder, "spin_v2.sh"), folder / "console"
    console.unlink(missing_ok=True)
    (root / "contests").mkdir()
    for number, contest in enumerate(contests):
        (root / "contests" / f"{number:04}").write_text("".join(_lines(contest)))
    cpus = range(1 + max(cpu for contest in contests for cpu in contest.cpus))
    guest = server(
        "cgroup-v2", cpus=frozenset(cpus), vcpus=len(cpus), extra_specs={}, memory_mb=256
    )
    settings = f"SETTLE={_SECONDS_TO_SETTLE} WINDOW={seconds} COUNT={count}"
    elements = linux_elements(root, console, settings)
    a_contest = _SECONDS_TO_SETTLE + seconds * count + _SECONDS_TO_CHANGE
    with running(connection, guest, {"kernel": lambda _: elements}, emulated=True) as domain:
        machines = cpu_cgroups(threads(domain)[0])[-1]
        with outweighing(machines):
            domain.resume()
            text = wait_until_done(console, _SECONDS_TO_BOOT + a_contest * len(contests))
    return [
        list(_windows(part, contest))
        for part, contest in zip(text.split("contest\n")[1:], contests, strict=True)
    ]


def _contenders(contest: Contest) -> dict[str, Contender]:
    contenders = contest.contenders(DEFAULT_WEIGHT)
    if contest.service:
        contenders[SERVICE] = Contender(weight=DEFAULT_WEIGHT, threads={contest.service: 1})
    return contenders


def _scope(name: str) -> str:
    if name == SERVICE:
        return "system.slice"
    escaped = name.replace("-", r"\x2d")
    return rf"machine.slice/machine-qemu\x2d1\x2d{escaped}.scope"


def _lines(contest: Contest) -> Iterator[str]:
    """Yield the input of spin_v2.sh: a line for each thread."""
    for name, contender in _contenders(contest).items():
        threads = [cpus for cpus, count in contender.threads.items() for _ in range(count)]
        for number, cpus in enumerate(threads):
            numbers = ",".join(map(str, sorted(cpus)))
            yield f"{_scope(name)} {contender.weight} libvirt/vcpu{number} {numbers}\n"


def _windows(text: str, contest: Contest) -> Iterator[ContestWindow]:
    """Yield what ran between two readings on the console."""
    names = {f"{_scope(name)}/cpu.stat": name for name in _contenders(contest)}
    none = {contestant.name: 0.0 for contestant in contest.contestants}
    wanted = sum(contest.entitlements(DEFAULT_WEIGHT).values())
    for before, after in pairwise(text.split("uptime\n")[1:]):
        (start, early), (end, late) = _reading(before), _reading(after)
        received = none | {
            name: (late[path] - early[path]) / 1e6 / (end - start) for path, name in names.items()
        }
        spent = _spent(contest, _thread_times(before), _thread_times(after))
        yield ContestWindow(
            cpus=received,
            foreign=max(0.0, wanted - sum(received.values())),
            missing=_missing(contest, spent, end - start),
        )


_SCHEDSTAT = re.compile(r"^/proc/\d+/schedstat:(\d+) (\d+) (\d+)$", re.MULTILINE)


def _thread_times(text: str) -> list[CpuTime]:
    """Return the CPU times of all threads, in the order of the lines of the contest."""
    return [
        CpuTime(int(ran) / 1e9, int(waited) / 1e9, int(runs))
        for ran, waited, runs in _SCHEDSTAT.findall(text)
    ]


def _spent(
    contest: Contest, before: Sequence[CpuTime], after: Sequence[CpuTime]
) -> Mapping[tuple[str, frozenset[int]], Sequence[CpuTime]]:
    """Return what threads ran and waited between two readings, by contender and CPUs."""
    owners = [
        (name, frozenset(cpus))
        for name, contender in _contenders(contest).items()
        for cpus, count in contender.threads.items()
        for _ in range(count)
    ]
    spent = defaultdict[tuple[str, frozenset[int]], list[CpuTime]](list)
    for owner, early, late in zip(owners, before, after, strict=True):
        spent[owner].append(CpuTime(late.ran - early.ran, late.waited - early.waited))
    return spent


def _missing(
    contest: Contest,
    spent: Mapping[tuple[str, frozenset[int]], Sequence[CpuTime]],
    seconds: float,
) -> dict[str, float]:
    """Return what the watch would count as missing for each guest, in CPUs.

    A thread beyond the vCPUs with the same CPUs is a thread of QEMU.
    """
    missing = {}
    for name, rates in vcpu_rates(contest, DEFAULT_WEIGHT).items():
        times = {cpus: spent.get((name, cpus), ()) for cpus in rates}
        vcpus = [time for cpus, of in rates.items() for time in times[cpus][: len(of)]]
        ran = sum(t.ran for (owner, _), of in spent.items() for t in of if owner == name)
        missing[name] = delivery_of(
            vcpus,
            seconds,
            [rate for of in rates.values() for rate in of],
            qemu_cpus=(ran - sum(time.ran for time in vcpus)) / seconds,
        ).missing
    return missing


def _reading(text: str) -> tuple[float, Mapping[str, int]]:
    """Return the time of a reading in seconds, and the microseconds by file."""
    (uptime,) = re.findall(r"^/proc/uptime:([0-9.]+)", text, re.MULTILINE)
    pairs = re.findall(r"^(\S+):usage_usec ([0-9]+)", text, re.MULTILINE)
    return float(uptime), {path: int(usage) for path, usage in pairs}
