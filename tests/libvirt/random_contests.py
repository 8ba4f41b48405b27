"""Contests of drawn guests on CPUs 0 and 1, and what each guest received, beside its floor."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Literal, get_args

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.tools.host.checks.delivery import TOLERANCE
from tests.libvirt.contest import SECONDS_TO_READ, ContestWindow
from tests.libvirt.contestants import Contest, Contestant
from tests.libvirt.promises import dues_of_contest, missing_cpus
from tests.libvirt.servers import server

Kind = Literal["floating", "pinned", "mixed"]

CPUS = (0, 1)
_CPU_SETS = (frozenset({0}), frozenset({1}), frozenset(CPUS))
_MOST_GUESTS, _MOST_VCPUS = 6, 4
_UNTIERED, _BUSY_EMULATOR = 1 / 6, 1 / 5

MOST_FOREIGN = 0.05
"""A window in which others took more than this part of a CPU is left out."""

EXACT = 0.05
"""The watch counts what is missing to this part."""

_TICK = 0.004
"""The kernel ends a run at a tick: ``CONFIG_HZ`` is 250 in Debian's kernels."""

_FIRST_WITH_EEVDF = (6, 6)
_SLICE = 0.0014
"""EEVDF: ``base_slice_ns`` of a machine with two CPUs, from kernel/sched/fair.c."""

_LATENCY = 0.012
"""CFS: ``latency_ns`` of a machine with two CPUs, the longest slice with up to 8 threads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a guest received in a window, and what it was entitled to, as numbers of CPUs.

    :param shares: ``None`` for a guest without a tier.
    :param due: what was due to the guest while all its vCPUs want to run.
    :param missing: what the watch counted as missing of that; ``None`` without a watch.
    :param turn: the longest run of a thread, as a part of the window.
    :param noise: how much less than its floor the guest may receive because the window begins and
        ends within a period of the scheduler.
    """

    guest: str
    kind: Kind
    shares: int | None
    vcpus: int
    busy_emulator: bool
    floor: float
    entitlement: float
    noise: float
    measured: float
    due: float = 0.0
    missing: float | None = None
    turn: float = 0.0

    @property
    def lacks(self) -> float:
        """Return what the guest lacks of what was due by its measured CPUs."""
        return missing_cpus(self.due, self.measured)

    @property
    def error_of_watch(self) -> float | None:
        """Return how far the count of the watch is from the measured CPUs, as a part of these.

        ``None`` if nothing is missing, or hardly more than the tenth from which the watch counts.
        """
        missing = self.due - self.measured
        if self.missing is None or missing <= 1.1 * TOLERANCE * self.due + self.noise:
            return None
        return self.missing / missing - 1

    @property
    def noise_of_watch(self) -> float:
        """Return how far the count may be off because of the ends of the window, as a part.

        The kernel counts a wait when the wait ends. A vCPU with a part *p* of a CPU waits for
        1 / *p* turns: so long it did not seem to want to run at one of the ends.
        """
        missing, part = self.due - self.measured, self.measured / self.vcpus
        if missing <= 0 or not part:
            return 0.0
        return (self.due * self.turn / part + self.noise) / missing

    @property
    def watch_is_right(self) -> bool:
        """Tell whether the watch counts what is missing to 5 %, beyond the ends of the window."""
        error = self.error_of_watch
        return error is None or abs(error) <= EXACT + self.noise_of_watch

    def is_below_floor(self, foreign: float) -> bool:
        """Tell whether less than the floor arrived, beyond the noise and the time of others.

        :param foreign: what others took in the window.
        """
        return self.measured < self.floor - self.noise - foreign


def draw_contest(rng: Random) -> Contest:
    """Return a contest of 2 to 6 guests, the lightest first."""
    drawn = [_draw(rng, number) for number in range(rng.randint(2, _MOST_GUESTS))]
    contestants = tuple(sorted(drawn, key=lambda contestant: shares_of(contestant) or 1024))
    return Contest(title=f"{len(drawn)} drawn guests", contestants=contestants)


def _draw(rng: Random, number: int) -> Contestant:
    kind: Kind = rng.choice(get_args(Kind))
    weight = round(10 ** rng.uniform(0, 4))
    specs = {} if rng.random() < _UNTIERED else {"quota:cpu_shares": str(weight)}
    vcpus = rng.randint(2 if kind == "mixed" else 1, 2 if kind == "pinned" else _MOST_VCPUS)
    pins = {
        "floating": 0,
        "pinned": vcpus,
        "mixed": rng.randint(1, min(len(CPUS), vcpus - 1 or 1)),
    }
    guest = server(
        f"{kind}-{number}",
        cpus=rng.choice(_CPU_SETS),
        vcpus=vcpus,
        pinned=frozenset(rng.sample(CPUS, pins[kind])),
        extra_specs=specs,
    )
    busy, apart = rng.random() < _BUSY_EMULATOR, rng.random() < 1 / 2
    return Contestant(guest=with_emulator_apart(guest) if apart else guest, busy_emulator=busy)


def with_emulator_apart(guest: Guest) -> Guest:
    """Let the emulator threads of a guest with pinned vCPUs float over the shared CPUs."""
    if guest.topology is None:
        return guest
    return replace(guest, topology=replace(guest.topology, emulator_threads_policy="share"))


def shares_of(contestant: Contestant) -> int | None:
    """Return the shares of the flavor, or ``None`` without a tier."""
    shares = contestant.guest.flavor.extra_specs.get("quota:cpu_shares")
    return int(shares) if shares else None


def kind_of(contestant: Contestant) -> Kind:
    """Return whether the vCPUs of a guest float, are pinned, or both."""
    guest = contestant.guest
    if guest.topology is None:
        return "floating"
    return "mixed" if guest.topology.cpu_policy == "mixed" else "pinned"


def outcomes(
    contest: Contest,
    default_weight: int,
    window: ContestWindow,
    *,
    seconds: float,
    release: str,
    emulated: bool = False,
) -> list[Outcome]:
    """Return the outcome of a window for each guest.

    :param release: of the kernel, such as ``6.1.0-18-cloud-amd64``.
    :param emulated: whether every QEMU emulates its guest.
    """
    entitlements = contest.entitlements(default_weight)
    floors = (contest.emulated_floors if emulated else contest.floors)(default_weight)
    contenders = contest.contenders(default_weight)
    dues = dues_of_contest(contest, default_weight)
    return [
        Outcome(
            guest=contestant.name,
            kind=kind_of(contestant),
            shares=shares_of(contestant),
            vcpus=contestant.guest.flavor.vcpus,
            busy_emulator=contestant.busy_emulator,
            floor=floors[contestant.name],
            entitlement=entitlements[contestant.name],
            noise=noise(
                len(_union(contenders[contestant.name].threads)),
                seconds,
                release,
                reading=window.reading,
            ),
            measured=window.cpus[contestant.name],
            due=float(dues[contestant.name].cpus),
            missing=window.missing.get(contestant.name),
            turn=longest_run(release) / seconds,
        )
        for contestant in contest.contestants
    ]


def _union(cpu_sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset[int]().union(*cpu_sets)


def noise(cpus: int, seconds: float, release: str, *, reading: float = SECONDS_TO_READ) -> float:
    """Return how many CPUs less than its part a guest may receive in a window.

    On a CPU a guest runs once in each period of the scheduler. The window begins and ends at any
    time of a period, so at each end one run may be missing. The clocks of the guests are not read
    at the same time, either.

    :param cpus: the number of CPUs on which the guest may run.
    :param reading: for how many seconds the clocks were read.
    """
    return cpus * (2 * longest_run(release) + reading) / seconds


def longest_run(release: str) -> float:
    """Return how long a thread runs at most on a CPU that others want, in seconds."""
    version: Sequence[int] = [int(part) for part in release.split(".")[:2]]
    return _TICK + (_SLICE if tuple(version) >= _FIRST_WITH_EEVDF else _LATENCY)
