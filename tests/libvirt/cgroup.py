"""The cgroups of the cpu controller on this machine, v1 or v2."""

import os
import subprocess
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from glob import glob
from pathlib import Path

import libvirt

from cpu_tiers.tools.tiers.domain import Version

PARTITION = f"cputiers{os.getpid()}"
"""Where libvirt has the guests of a contest, in place of ``machine``."""

_LARGEST = {"cpu.shares": 2**18, "cpu.weight": 10_000}
_ROOT = Path("/sys/fs/cgroup")
_IDLE = 3
"""The index of the idle time in a line of ``/proc/stat``, before the time of idle I/O; proc(5)."""

_FIRST_WITH_1 = 9_001_000
"""libvirt 9.1.0. Older versions apply the range of cgroup v1 to v2, too:
https://github.com/libvirt/libvirt/commit/38af6497610075e5fe386734b87186731d4c17ac.
"""


def cpu_cgroups(thread: int) -> list[Path]:
    """Return the cgroup of a thread and its parents, without the root."""
    lines = Path(f"/proc/{thread}/cgroup").read_text().splitlines()
    paths = {controllers: path for _, controllers, path in (line.split(":", 2) for line in lines)}
    v1 = paths.get("cpu", paths.get("cpu,cpuacct"))
    root = _ROOT if v1 is None else _ROOT / "cpu"
    group = root / (paths[""] if v1 is None else v1).lstrip("/")
    return [path for path in (group, *group.parents) if path.is_relative_to(root) and path != root]


def guest_cgroup(guest: libvirt.virDomain) -> Path:
    """Return the cgroup of a running guest, as libvirt names it.

    The name contains the id of the guest: libvirt may not have removed the cgroup of an earlier
    guest of the same name yet. The embedded driver adds ``embed`` and a number to the name, and
    systemd escapes hyphens.
    """
    name = f"-{guest.ID()}-{guest.name()}"
    escaped = name.replace("-", r"\x2d")
    (group,) = {
        path.parent
        for pattern in (f"qemu*{name}.libvirt-qemu", f"machine-qemu*{escaped}.scope")
        # Path.glob fails if the cgroup of another guest vanishes meanwhile.
        for path in map(Path, glob(f"{_ROOT}/**/{pattern}/cpu.*", recursive=True))  # noqa: PTH207
        if path.name in _LARGEST
    }
    return group


def weight_file(guest: libvirt.virDomain) -> Path:
    """Return the file with the weight of a running guest's cgroup."""
    (file,) = (path for path in guest_cgroup(guest).iterdir() if path.name in _LARGEST)
    return file


def version() -> Version:
    """Return the cgroup version of the cpu controller."""
    return 1 if (_ROOT / "cpu").exists() else 2


def default_weight() -> int:
    """Return the default weight of a cgroup."""
    return 1024 if version() == 1 else 100


def busy_seconds(cpus: Collection[int]) -> float:
    """Return how long these CPUs were not idle since the start of the machine, in sum.

    The time includes steal time: an idle CPU has none.
    """
    ticks = os.sysconf("SC_CLK_TCK")
    idle = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *values = line.split()
        if name.removeprefix("cpu") in map(str, cpus) and name != "cpu":
            idle += int(values[_IDLE]) + int(values[_IDLE + 1])
    return len(cpus) * time.clock_gettime(time.CLOCK_BOOTTIME) - idle / ticks


def least_weight(connection: libvirt.virConnect, version: Version) -> int:
    """Return the least weight that libvirt gives a guest on a host with this cgroup version."""
    return 1 if version == 2 and connection.getLibVersion() >= _FIRST_WITH_1 else 2


@contextmanager
def outweighing(group: Path, weight: int | None = None) -> Iterator[None]:
    """Give a cgroup the largest possible weight, or another, for the duration of a block.

    Other processes of the machine then take hardly any CPU time from the cgroup.
    """
    (file,) = (group / name for name in _LARGEST if (group / name).exists())
    before = file.read_text()
    file.write_text(str(weight or _LARGEST[file.name]))
    try:
        yield
    finally:
        file.write_text(before)


@contextmanager
def partition() -> Iterator[None]:
    """Make the cgroups of a partition for guests.

    If systemd runs, libvirt makes the cgroups through systemd.
    """
    roots = [] if Path("/run/systemd/system").exists() else _controllers()
    with _made([root / f"{PARTITION}.partition" for root in roots]):
        yield


@contextmanager
def _made(groups: Sequence[Path]) -> Iterator[None]:
    """Make cgroups with the CPUs and the memory of their parents, and remove them at the end."""
    for group in groups:
        group.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):  # nobody can run in v1 before they are set
            if (group.parent / name).exists():
                (group / name).write_text((group.parent / name).read_text())
    try:
        yield
    finally:
        for group in groups:
            group.rmdir()


@contextmanager
def nested_partition(guest: libvirt.virDomain) -> Iterator[str]:
    """Make the cgroups of a partition beside a guest; yield its name for libvirt."""
    parent = guest_cgroup(guest).parent
    inside = parent.relative_to(_ROOT if version() == 2 else _ROOT / "cpu")
    parents = [root / inside for root in _controllers()]
    with _made([each / "tenant.partition" for each in parents if each.exists()]):
        yield f"{inside}/tenant"


def freezer_file(guest: libvirt.virDomain) -> Path:
    """Return the file that freezes a running guest."""
    group = guest_cgroup(guest)
    if version() == 2:
        return group / "cgroup.freeze"
    return _ROOT / "freezer" / group.relative_to(_ROOT / "cpu") / "freezer.state"


def _controllers() -> list[Path]:
    """Return where the controllers are mounted; one folder in v2."""
    if (_ROOT / "cgroup.procs").exists():
        return [_ROOT]
    return [path.parent for path in _ROOT.glob("*/cgroup.procs") if not path.parent.is_symlink()]


@contextmanager
def busy_service(
    beside: Path, cpus: frozenset[int], *, weight: int | None = None
) -> Iterator[int]:
    """Run a process that spins, in a cgroup beside another; return its id.

    :param weight: of the cgroup; ``None`` for the largest possible weight.
    """
    group = beside.with_name(f"{PARTITION}.service")
    group.mkdir()
    try:
        with (
            outweighing(group, weight),
            subprocess.Popen(["sh", "-c", "while :; do :; done"]) as process,
        ):
            try:
                os.sched_setaffinity(process.pid, cpus)
                (group / "cgroup.procs").write_text(str(process.pid))
                yield process.pid
            finally:
                process.kill()
    finally:
        group.rmdir()
