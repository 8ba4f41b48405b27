"""Read how long the cgroup of a guest was throttled, and how long its threads lacked a CPU.

Sources: ``cpu.stat`` and ``cpu.pressure``,
https://docs.kernel.org/admin-guide/cgroup-v2.html#cpu-interface-files and
https://docs.kernel.org/accounting/psi.html; ``cpu.stat`` of cgroup v1,
https://docs.kernel.org/scheduler/sched-bwc.html. cgroup v1 has no pressure for each cgroup.
"""

from errno import EOPNOTSUPP
from typing import NamedTuple

from cpu_tiers.tools.cgroup.files import VANISHED, Files
from cpu_tiers.tools.cgroup.hierarchy import Hierarchy

HOST_PRESSURE = "/proc/pressure/cpu"

_THROTTLED = {1: ("throttled_time", 1e9), 2: ("throttled_usec", 1e6)}
"""The name of the throttled time in ``cpu.stat`` and its units in a second, by cgroup version."""


class Stalls(NamedTuple):
    """Times of a guest since its start, in seconds.

    :param throttled: how long a quota stopped the threads, summed over the cgroups of the guest.
    :param pressure: how long at least one thread waited for a CPU; ``None`` if the kernel does
        not count pressure for each cgroup.
    """

    throttled: float
    pressure: float | None


def read_stalls(files: Files, hierarchy: Hierarchy, path: str, inner: tuple[str, ...]) -> Stalls:
    """Return the stalls of a guest.

    :param path: the path of the cgroup of the guest.
    :param inner: the paths of the cgroups in it that have a quota of their own.
    :raises OSError: the user may not read a file.
    :raises ValueError: a file does not contain a number.
    """
    throttled = sum(_throttled(files, hierarchy, each) for each in (path, *inner))
    folder = hierarchy.folder(path)
    pressure = read_pressure(files, f"{folder}/cpu.pressure") if hierarchy.version == 2 else None
    return Stalls(throttled=throttled, pressure=pressure)


def read_pressure(files: Files, path: str) -> float | None:
    """Return how long at least one thread waited for a CPU, in seconds.

    :param path: :data:`HOST_PRESSURE`, or ``cpu.pressure`` of a cgroup.
    :return: ``None`` if the kernel does not count pressure.
    :raises OSError: the user may not read the file.
    :raises ValueError: the file does not contain a number.
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
