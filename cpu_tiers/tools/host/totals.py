"""The totals of a guest under watch: the CPU time that it got, waited for and was owed.

The totals are sums over intervals. In each interval the guest is owed its floor, and its fair
share, for the time in which it wanted to run (see
:mod:`cpu_tiers.tools.host.checks.delivery`). Pure.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from cpu_tiers.model.domain import CpuTime
from cpu_tiers.tools.host.checks import TOLERANCE, wanted_cpus

WAITS = (0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0)
"""The upper bounds of the buckets of waits, in seconds. A further bucket has no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long vCPUs waited before each run.

    The wait is the average of a vCPU in an interval: the kernel counts runs, and sums up waits.

    :param runs: for each bucket of :data:`WAITS`, and for longer waits, the number of runs.
    :param seconds: the sum of all waits.
    """

    runs: tuple[int, ...] = (0,) * (len(WAITS) + 1)
    seconds: float = 0.0

    def plus(self, spent: Sequence[CpuTime]) -> "Waits":
        """Return the waits with those of vCPUs in a further interval."""
        runs = list(self.runs)
        for time in spent:
            if time.runs:
                runs[bisect_left(WAITS, time.waited / time.runs)] += time.runs
        seconds = self.seconds + sum(time.waited for time in spent)
        return Waits(runs=tuple(runs), seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Sums in seconds of CPU time, over all vCPUs of a guest.

    :param runs: how many times a vCPU began to run.
    :param owed_floor: the floor of the guest while it wanted to run.
    :param owed_fair: the fair share of the guest while it wanted to run.
    :param missing: what the guest ran less than its owed floor, in the intervals in which more
        than a tenth of the owed floor was missing.
    """

    ran: float = 0.0
    waited: float = 0.0
    runs: int = 0
    owed_floor: float = 0.0
    owed_fair: float = 0.0
    missing: float = 0.0

    def plus(
        self, spent: Sequence[CpuTime], seconds: float, rates: Sequence[tuple[float, float]]
    ) -> "Totals":
        """Return the totals with a further interval.

        :param spent: the CPU time of each vCPU in the interval.
        :param seconds: the length of the interval.
        :param rates: the floor and the fair share of each vCPU in CPUs. The guest is owed nothing
            if there are not as many as vCPUs: the promises of the guest are not known.
        """
        ran = sum(time.ran for time in spent)
        floor = fair = 0.0
        if len(rates) == len(spent):
            wanted = wanted_cpus(spent, seconds)
            floor = seconds * sum(low * part for (low, _), part in zip(rates, wanted, strict=True))
            fair = seconds * sum(
                high * part for (_, high), part in zip(rates, wanted, strict=True)
            )
        missing = floor - ran
        return Totals(
            ran=self.ran + ran,
            waited=self.waited + sum(time.waited for time in spent),
            runs=self.runs + sum(time.runs for time in spent),
            owed_floor=self.owed_floor + floor,
            owed_fair=self.owed_fair + fair,
            missing=self.missing + (missing if missing > floor * TOLERANCE else 0.0),
        )
