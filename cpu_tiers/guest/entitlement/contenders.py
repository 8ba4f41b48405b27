"""Who competes for the CPUs of a host, and with which weight."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import lcm

from cpu_tiers.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A cgroup whose threads all want to run: a guest, or a service of the host.

    :param weight: ``cpu.shares`` or ``cpu.weight``; the kernel's default where
        nobody sets one (1024 in cgroup v1, 100 in v2).
    :param threads: how many there are, by the host CPUs that they may run on.
        Of a guest these are the vCPUs.
    """

    weight: int
    threads: Mapping[frozenset[int], int]

    def __post_init__(self) -> None:
        """Refuse what cannot run.

        :raises InvalidInput: a weight below 1, or a thread without a CPU.
        """
        _check_weight(self.weight)
        if not all(self.threads):
            raise InvalidInput.of("CPU set of a thread", "no CPU", "give at least one")

    @classmethod
    def of(cls, weight: int, cpu_sets: Iterable[frozenset[int]]) -> "Contender":
        """Return the contender with one thread for each of the CPU sets."""
        return cls(weight=weight, threads=Counter(cpu_sets))


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A cgroup of cgroups, such as ``machine.slice``: its members divide its weight."""

    weight: int
    members: Mapping[str, "Contender | Slice"]

    def __post_init__(self) -> None:
        """Refuse what cannot run.

        :raises InvalidInput: a weight below 1.
        """
        _check_weight(self.weight)


def weights_per_thread(host: Mapping[str, Contender | Slice]) -> dict[str, tuple[Contender, int]]:
    """Return each contender that has threads, and the weight of one of them, by path.

    The weights of all are to the same scale, on which each is a whole number.
    """
    found = dict(_weigh(host, Fraction(1), ""))
    scale = lcm(*{weight.denominator for _, weight in found.values()})
    return {
        path: (contender, weight.numerator * (scale // weight.denominator))
        for path, (contender, weight) in found.items()
    }


def _weigh(
    members: Mapping[str, Contender | Slice], unit: Fraction, prefix: str
) -> Iterator[tuple[str, tuple[Contender, Fraction]]]:
    """Yield the contenders, where a weight of 1 among the members comes to ``unit``."""

    @cache  # guests of one flavor are alike
    def share(weight: int, parts: int) -> Fraction:
        return unit * weight / parts

    for name, member in members.items():
        if isinstance(member, Slice):
            total = sum(m.weight for m in member.members.values() if _wants_to_run(m))
            if total:
                yield from _weigh(member.members, share(member.weight, total), f"{prefix}{name}/")
        elif threads := sum(member.threads.values()):
            yield f"{prefix}{name}", (member, share(member.weight, threads))


def _wants_to_run(member: Contender | Slice) -> bool:
    if isinstance(member, Slice):
        return any(map(_wants_to_run, member.members.values()))
    return any(member.threads.values())


def _check_weight(weight: int) -> None:
    if weight < 1:
        raise InvalidInput.of("weight of a cgroup", f"got {weight}", "the kernel has none below 1")
