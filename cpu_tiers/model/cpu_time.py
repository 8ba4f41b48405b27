"""CPU time of vCPUs: how long each ran, and how long it wanted to and had to wait."""

from collections.abc import Mapping
from typing import NamedTuple


class CpuTime(NamedTuple):
    """Of one vCPU, in seconds.

    :param waited: in a run queue, runnable, while others ran.
    """

    ran: float
    waited: float


CpuTimes = Mapping[str, tuple[CpuTime, ...]]
"""By the uuid of the domain, for each vCPU that is online."""


def between(before: CpuTimes, after: CpuTimes) -> dict[str, tuple[CpuTime, ...]]:
    """Return what was spent from one reading to the next.

    A domain that is not in both with the same number of vCPUs is left out, as is
    one whose clock went back: it started anew.
    """
    spent = {}
    for uuid, late in after.items():
        early = before.get(uuid, ())
        if len(early) != len(late):
            continue
        times = tuple(
            CpuTime(b.ran - a.ran, b.waited - a.waited) for a, b in zip(early, late, strict=True)
        )
        if all(time.ran >= 0 and time.waited >= 0 for time in times):
            spent[uuid] = times
    return spent
