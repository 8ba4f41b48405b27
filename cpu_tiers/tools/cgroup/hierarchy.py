r"""Find the cgroups with a CPU weight, in cgroup v1 or v2, and how long they lacked CPU time.

libvirt (https://libvirt.org/cgroups.html) puts a guest into
``machine.slice/machine-qemu\x2d1\x2dNAME.scope`` if systemd runs, otherwise into
``machine/qemu-1-NAME.libvirt-qemu``, or into the partition that ``<resource><partition>`` names.
The threads of the guest are in the child cgroups ``emulator``, ``vcpu0`` and so on; with systemd,
in child cgroups of ``libvirt`` below the cgroup of the guest. The weight of the guest is the
weight of the cgroup that contains all of its threads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from errno import EOPNOTSUPP
from pathlib import PurePosixPath
from typing import NamedTuple

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cgroup.files import VANISHED, Files
from cpu_tiers.tools.tiers.domain import Version

INNER_NAME = re.compile(r"emulator|vcpu[0-9]+|iothread[0-9]+")
"""The names of the cgroups in the cgroup of a guest."""

GUEST_NAME = re.compile(r"qemu-.*\.libvirt-qemu|machine-qemu.*\.scope")
"""The names of the cgroups of guests, with the prefix ``qemu-embed-`` of the embedded driver."""

_BELOW_A_GUEST = re.compile(rf"(/libvirt)?(/({INNER_NAME.pattern}))?$")
_WEIGHT_FILE = {1: "cpu.shares", 2: "cpu.weight"}

_OCTAL = re.compile(r"\\(0[0-7]{2}|1[0-7]{2})")
"""The kernel writes blanks, tabs, line feeds and backslashes of a mount point so (fstab(5))."""

_NEEDS = "run the command on the compute host, where /sys/fs/cgroup is mounted"

HOST_PRESSURE = "/proc/pressure/cpu"

_FROZEN = ("FROZEN", "FREEZING")

_THROTTLED = {1: ("throttled_time", 1e9), 2: ("throttled_usec", 1e6)}
"""The name of the throttled time in ``cpu.stat`` and its units in a second, by cgroup version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hierarchy:
    """The cgroup hierarchy with the cpu controller, which divides CPU time.

    A method that takes files raises an :exc:`OSError` if the user may not read a file, and a
    :exc:`ValueError` if a file does not contain a number.

    :param mount: the folder where the hierarchy is mounted.
    :param freezer: the folder of the freezer of cgroup v1; ``None`` without it.
    """

    version: Version
    mount: str
    freezer: str | None = None

    def guest_of(self, membership: str) -> str | None:
        """Return the path of a guest's cgroup.

        :param membership: the content of ``/proc/PID/cgroup`` of the QEMU process.
        :returns: ``None`` if libvirt made no cgroup for the guest. The QEMU process is then in
            the cgroup of libvirt itself.
        """
        path = self.path_of(membership)
        guest_path = _BELOW_A_GUEST.sub("", path)
        return guest_path if guest_path != path else None

    def path_of(self, membership: str) -> str:
        """Return the path of the cgroup of a process or a thread; empty text without a cgroup.

        :param membership: the content of ``/proc/PID/cgroup`` or ``/proc/PID/task/TID/cgroup``.
        """
        # cgroups(7): the line of the v2 hierarchy has no controllers.
        return _path_of("" if self.version == 2 else "cpu", membership)

    def weight(self, files: Files, path: str) -> int | None:
        """Return the weight of a cgroup, or ``None`` if the cgroup has no weight."""
        try:
            text = files.read(f"{self.folder(path)}/{_WEIGHT_FILE[self.version]}").strip()
        except VANISHED:
            return None
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise ValueError(f"{text[:40]!r} is no weight")
        return int(text)

    def quota(self, files: Files, path: str) -> tuple[int, int] | None:
        """Return the quota of a cgroup and the period in microseconds; ``None`` for no quota."""
        folder = self.folder(path)
        try:
            if self.version == 2:
                quota, period = files.read(f"{folder}/cpu.max").split()
                return None if quota == "max" else (int(quota), int(period))
            microseconds = int(files.read(f"{folder}/cpu.cfs_quota_us"))
            if microseconds < 0:
                return None
            return microseconds, int(files.read(f"{folder}/cpu.cfs_period_us"))
        except VANISHED:
            return None

    def is_idle(self, files: Files, path: str) -> bool:
        """Tell whether a cgroup runs only while no other thread wants to run: ``cpu.idle``."""
        try:
            return files.read(f"{self.folder(path)}/cpu.idle").strip() == "1"
        except VANISHED:  # before Linux 5.15
            return False

    def is_populated(self, files: Files, path: str) -> bool:
        """Tell whether a cgroup contains a process, also in the cgroups below."""
        folder = self.folder(path)
        if self.version == 2:
            return "populated 1" in files.read(f"{folder}/cgroup.events").splitlines()
        if files.read(f"{folder}/cgroup.procs").strip():
            return True
        return any(self.is_populated(files, f"{path}/{name}") for name in files.folders(folder))

    def folder(self, path: str) -> str:
        """Return the folder of a cgroup."""
        return str(PurePosixPath(self.mount) / path.lstrip("/"))


def find_hierarchy(files: Files) -> Hierarchy:
    """Return the cgroup hierarchy with the cpu controller.

    On a host with the hybrid layout of systemd both versions are mounted. If the cpu
    controller is mounted with cgroup v1, the kernel uses cgroup v1 for it.

    :raises InvalidInput: no hierarchy with the cpu controller is mounted, or the list of mounts
        cannot be read.
    """
    try:
        mounts = files.read("/proc/self/mounts")
    except (OSError, ValueError) as error:
        raise InvalidInput.of("/proc/self/mounts", f"cannot be read ({error})", _NEEDS) from error
    folders: dict[Version, str] = {}
    freezer = None
    for folder, kind, options in _mounts(mounts):
        if kind == "cgroup" and "cpu" in options:
            folders.setdefault(1, folder)
        elif kind == "cgroup" and "freezer" in options:
            freezer = folder
        elif kind == "cgroup2":
            folders.setdefault(2, folder)
    if not folders:
        raise InvalidInput.of("cgroups", "no cpu controller is mounted", _NEEDS)
    version = min(folders)
    return Hierarchy(version=version, mount=folders[version], freezer=freezer)


def _mounts(mounts: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the folder, the kind and the options of each line of ``/proc/self/mounts``."""
    for _, folder, kind, options, *_ in _fields(mounts, " ", 6):
        yield _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), folder), kind, options.split(",")


def is_frozen(files: Files, hierarchy: Hierarchy, membership: str) -> bool:
    """Tell whether the freezer of cgroups stopped a process.

    Sources: https://docs.kernel.org/admin-guide/cgroup-v1/freezer-subsystem.html and
    https://docs.kernel.org/admin-guide/cgroup-v2.html#core-interface-files.

    :param membership: the content of ``/proc/PID/cgroup`` of the process.
    """
    try:
        if hierarchy.version == 2:
            events = f"{hierarchy.folder(hierarchy.path_of(membership))}/cgroup.events"
            return "frozen 1" in files.read(events).splitlines()
        state = f"{hierarchy.freezer}{_path_of('freezer', membership)}/freezer.state"
        return hierarchy.freezer is not None and files.read(state).strip() in _FROZEN
    except VANISHED:  # the root cgroup has no such file
        return False


def _path_of(controller: str, membership: str) -> str:
    """Return the path of the cgroup of a controller; empty text without a cgroup."""
    for _, controllers, path in _fields(membership, ":", 3):
        if controller in controllers.split(","):
            return path
    return ""


def _fields(text: str, separator: str, count: int) -> Iterator[list[str]]:
    """Yield the fields of each line that has ``count`` fields; the last field has the rest.

    The lines end with a line feed. ``str.splitlines`` would also split at characters that the
    name of a cgroup may contain.
    """
    for line in text.split("\n"):
        fields = line.split(separator, count - 1)
        if len(fields) == count:
            yield fields


class Stalls(NamedTuple):
    """Times of a guest since its start, in seconds.

    Sources: ``cpu.stat`` and ``cpu.pressure``,
    https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files and
    https://docs.kernel.org/accounting/psi.html; ``cpu.stat`` of cgroup v1,
    https://docs.kernel.org/scheduler/sched-bwc.html. cgroup v1 has no pressure for each cgroup.

    :param throttled: how long a quota stopped the threads, summed over the cgroups of the guest.
    :param pressure: how long at least one thread waited for a CPU; ``None`` if the kernel does
        not count pressure for each cgroup.
    """

    throttled: float
    pressure: float | None


def read_stalls(files: Files, hierarchy: Hierarchy, path: str, inner: tuple[str, ...]) -> Stalls:
    """Return the stalls of a guest.

    :param inner: the paths of the cgroups of the guest that have a quota of their own.
    :raises OSError, ValueError: as the methods of :class:`Hierarchy`.
    """
    throttled = read_throttled(files, hierarchy, path, inner)
    guest_file = f"{hierarchy.folder(path)}/cpu.pressure"
    return Stalls(throttled, read_pressure(files, guest_file) if hierarchy.version == 2 else None)


def read_throttled(files: Files, hierarchy: Hierarchy, path: str, inner: tuple[str, ...]) -> float:
    """Return how long a quota stopped the threads of a guest: see :func:`read_stalls`."""
    return sum(_throttled(files, hierarchy, each) for each in (path, *inner))


def read_pressure(files: Files, path: str) -> float | None:
    """Return how long at least one thread waited for a CPU, in seconds.

    :param path: :data:`HOST_PRESSURE`, or ``cpu.pressure`` of a cgroup.
    :return: ``None`` if the kernel does not count pressure.
    :raises OSError, ValueError: as the methods of :class:`Hierarchy`.
    """
    try:
        lines = files.read(path).splitlines()
    except VANISHED:
        return None
    except OSError as error:
        if error.errno == EOPNOTSUPP:  # the kernel was started with psi=0
            return None
        raise
    for line in lines:
        kind, *fields = line.split() or [""]
        if kind == "some" and fields and fields[-1].startswith("total="):
            return int(fields[-1].removeprefix("total=")) / 1e6
    return None


def _throttled(files: Files, hierarchy: Hierarchy, path: str) -> float:
    name, units = _THROTTLED[hierarchy.version]
    try:
        lines = files.read(f"{hierarchy.folder(path)}/cpu.stat").splitlines()
    except VANISHED:
        return 0.0
    values = dict(line.split(" ", 1) for line in lines if " " in line)
    return int(values.get(name, "0")) / units
