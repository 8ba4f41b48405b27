"""The contenders for the CPUs of a host, and the weight of each of their threads."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from math import lcm

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.tiers.domain import DEFAULT_WEIGHT

EMULATOR = "emulator"
"""The name of the contender that stands for the own threads of QEMU, in the slice of a guest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A cgroup whose threads all want to run: a guest, or a service of the host.

    :param weight: ``cpu.shares`` or ``cpu.weight``; without either the default of the kernel
        (1024 in cgroup v1, 100 in v2).
    :param threads: the number of threads by the set of host CPUs on which they may run. The
        threads of a guest are its vCPUs.
    """

    weight: int
    threads: Mapping[frozenset[int], int]

    def __post_init__(self) -> None:
        """Check the weight and the CPU sets.

        :raises InvalidInput: the weight is below 1, or a thread has an empty CPU set.
        """
        _check_weight(self.weight)
        if not all(self.threads):
            raise InvalidInput.of("CPU set of a thread", "no CPU", "give at least one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A cgroup of cgroups, for example ``machine.slice``. The members divide the weight.

    :param asleep: the names of members that sleep while the other members divide the weight.
    :param whole_shares: whether the weights of the members are in shares. The kernel rounds the
        weight of a member on a CPU to whole shares.
    """

    weight: int
    members: "Cgroups"
    asleep: frozenset[str] = frozenset()
    whole_shares: bool = False

    def __post_init__(self) -> None:
        """Check the weight."""
        _check_weight(self.weight)

    @classmethod
    def of_guests(cls, guests: "Cgroups", default_weight: int) -> "Slice":
        """Return the cgroup of all guests of a host, whose weight nobody has changed.

        The weights of its members are in shares. A weight of 1 is a share in cgroup v1, and 10.24
        shares in v2, rounded to a whole number (``cpu_weight_write_u64`` in kernel/sched/core.c).

        :param default_weight: the weight of a new cgroup, which is 1024 shares in the kernel.
        """

        @cache  # a host has many guests of the same flavor
        def shares(weight: int) -> int:
            return round(Fraction(weight * DEFAULT_WEIGHT[1], default_weight))

        members = {
            name: replace(each, weight=shares(each.weight)) for name, each in guests.items()
        }
        return cls(weight=default_weight, members=members, whole_shares=True)

    @property
    def awake(self) -> "Cgroups":
        """Return the members that divide the weight."""
        return {name: each for name, each in self.members.items() if name not in self.asleep}


Cgroups = Mapping[str, Contender | Slice]
"""Cgroups by name."""


def weights_per_thread(host: Cgroups) -> dict[str, tuple[Contender, int]]:
    """Return each contender with threads, and the weight of one of its threads, by path.

    All weights are scaled to integers by a common factor: computing with integers is much faster
    than with fractions.
    """
    contenders = dict(_weigh(host, Fraction(1), ""))
    scale = lcm(*{weight.denominator for _, weight in contenders.values()})
    return {
        path: (contender, weight.numerator * (scale // weight.denominator))
        for path, (contender, weight) in contenders.items()
    }


def _weigh(
    members: Cgroups, unit: Fraction, prefix: str
) -> Iterator[tuple[str, tuple[Contender, Fraction]]]:
    """Yield the contenders among the members; ``unit`` is the value of a weight of 1 here."""

    @cache  # a host has many guests of the same flavor, and fractions are slow
    def share(weight: int, parts: int) -> Fraction:
        return unit * weight / parts

    for name, member in members.items():
        if isinstance(member, Slice):
            if total := runnable_weight(member.awake):
                yield from _weigh(member.awake, share(member.weight, total), f"{prefix}{name}/")
        elif threads := sum(member.threads.values()):
            yield f"{prefix}{name}", (member, share(member.weight, threads))


def runnable_weight(members: Cgroups) -> int:
    """Return the weight of all members together.

    The kernel does not count a cgroup in which no thread wants to run.
    """
    return sum(member.weight for member in members.values() if _wants_to_run(member))


def _wants_to_run(member: Contender | Slice) -> bool:
    if isinstance(member, Slice):
        return any(map(_wants_to_run, member.awake.values()))
    return any(member.threads.values())


def _check_weight(weight: int) -> None:
    if weight < 1:
        raise InvalidInput.of("weight of a cgroup", f"got {weight}", "give at least 1")


Divide = Callable[[Cgroups], Mapping[str, Fraction]]
"""From the cgroups of a host to the CPUs of each contender by its path."""


def beside_emulators(host: Cgroups, overhead: Fraction, divide: Divide) -> dict[str, Fraction]:
    """Return what each contender gets while QEMU uses its overhead, by the path of the contender.

    The own threads of QEMU compete as one more vCPU of the guest; the formula is in
    ``docs/reference/entitlement.rst``. The result has no :data:`EMULATOR`.

    :param host: a guest is a slice of its vCPUs, and of a contender :data:`EMULATOR`.
    :param overhead: the CPU time of the own threads, divided by the CPU time of the vCPUs.
    :param divide: returns the floors or the entitlements.
    """
    awake, asleep = divide(host), divide(_with_emulators_asleep(host))
    vcpus = defaultdict[str, list[str]](list)
    for path in asleep:
        vcpus[path.rpartition("/")[0]].append(path)
    got = {}
    for guest, paths in vcpus.items():
        part = _part_awake(guest, paths, awake, asleep, overhead)
        for path in paths:
            got[path] = asleep[path] + part * (awake[path] - asleep[path])
    return got


def _part_awake(
    guest: str,
    vcpus: Collection[str],
    awake: Mapping[str, Fraction],
    asleep: Mapping[str, Fraction],
    overhead: Fraction,
) -> Fraction:
    """Return the part of the time in which the own threads of a guest want to run."""
    emulator_share = awake.get(f"{guest}/{EMULATOR}")
    if emulator_share is None:  # a service, which has no QEMU
        return Fraction(1)
    most, least = sum(asleep[path] for path in vcpus), sum(awake[path] for path in vcpus)
    return min(Fraction(1), overhead * most / (emulator_share + overhead * (most - least)))


def _with_emulators_asleep(members: Cgroups) -> dict[str, Contender | Slice]:
    """Return the cgroups, with the own threads of QEMU asleep in each guest."""
    return {
        name: member
        if isinstance(member, Contender)
        else replace(
            member,
            members=_with_emulators_asleep(member.members),
            asleep=frozenset({EMULATOR} & member.members.keys()),
        )
        for name, member in members.items()
    }
