"""The CPU time of vCPUs: how long each vCPU ran, and how long it waited for a CPU."""

from collections.abc import Mapping
from typing import NamedTuple


class CpuTime(NamedTuple):
    """The CPU time of a vCPU in seconds.

    :param waited: the time in the run queue of a CPU, while other threads ran.
    :param runs: how many times the vCPU began to run on a CPU.
    """

    ran: float
    waited: float
    runs: int = 0


CpuTimes = Mapping[str, tuple[CpuTime, ...]]
"""The CPU times of the vCPUs that are online, by the uuid of the domain."""


def between(before: CpuTimes, after: CpuTimes) -> dict[str, tuple[CpuTime, ...]]:
    """Return the CPU time that passed between two readings.

    The result has the domains that are in both readings with the same number of
    vCPUs. A domain whose CPU time decreased is left out: it was restarted.
    """
    spent = {}
    for uuid, late in after.items():
        early = before.get(uuid, ())
        if len(early) != len(late):
            continue
        times = tuple(
            CpuTime(b.ran - a.ran, b.waited - a.waited, b.runs - a.runs)
            for a, b in zip(early, late, strict=True)
        )
        if all(min(time) >= 0 for time in times):
            spent[uuid] = times
    return spent
