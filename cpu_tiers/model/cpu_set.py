"""Sets of CPU numbers, as nova.conf and extra specs write them.

Nova's syntax: ``0-3,8,^2`` (numbers, ranges, exclusions).
"""

from __future__ import annotations

import re

from cpu_tiers.errors import InvalidInput

MAX_CPU = 65535
"""The largest CPU number that is accepted. A larger number is a mistake: no kernel has it."""

_MAX_CHARACTERS = MAX_CPU + 1
"""The longest text that is read. Every second CPU of 8192 takes 20,000 characters."""

# At most 6 digits: converting the thousands of digits of a malicious text takes time.
_PART = r"(\^?)\s*([0-9]{1,6})(?:\s*-\s*([0-9]{1,6}))?"
_SYNTAX = f"give CPU numbers up to {MAX_CPU}, ranges and exclusions, such as 0-3,8,^2"


class CpuSet(frozenset[int]):
    """A set of CPU numbers; ``str()`` gives the shortest ranges, ``0-3,8``."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str, *, where: str, every: frozenset[int] = frozenset()) -> CpuSet:
        """Read a text such as ``0-3,8,^2``. As in Nova, empty parts are skipped.

        :param where: the name of the text in an error message.
        :param every: the CPUs from which a text that begins with an exclusion takes
            CPUs away.
        :raises InvalidInput: the text is malformed, or leaves no CPU.
        """
        if len(text) > _MAX_CHARACTERS:
            given = f"a text of {len(text)} characters"
            raise InvalidInput.of(where, given, f"{_SYNTAX}, in {_MAX_CHARACTERS} characters")
        included: list[tuple[int, int]] = []
        excluded: list[tuple[int, int]] = []
        for part in filter(None, map(str.strip, text.split(","))):
            match = re.fullmatch(_PART, part)
            if match is None:
                raise InvalidInput.of(where, f"{part!r} in {text!r} is no CPU or range", _SYNTAX)
            first, last = int(match[2]), int(match[3] or match[2])
            if last < first or last > MAX_CPU:
                raise InvalidInput.of(where, f"{part!r} in {text!r} is no range of CPUs", _SYNTAX)
            (excluded if match[1] else included).append((first, last))
        cpus = _numbers(included)
        if text.lstrip().startswith("^"):
            cpus |= every
        cpus -= _numbers(excluded)
        if not cpus:
            raise InvalidInput.of(where, f"{text!r} leaves no CPU", _SYNTAX)
        return cls(cpus)

    def __str__(self) -> str:
        """Return the numbers as ranges, in ascending order."""
        ranges: list[list[int]] = []
        for cpu in sorted(self):
            if ranges and cpu == ranges[-1][1] + 1:
                ranges[-1][1] = cpu
            else:
                ranges.append([cpu, cpu])
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in ranges)

    def __repr__(self) -> str:
        """Return the class and the ranges."""
        return f"CpuSet({str(self)!r})"


def _numbers(ranges: list[tuple[int, int]]) -> set[int]:
    """Return the numbers of all ranges.

    Ranges of a malicious text overlap by the thousands: each number is added once.
    """
    numbers: set[int] = set()
    beyond = 0
    for first, last in sorted(ranges):
        numbers.update(range(max(first, beyond), last + 1))
        beyond = max(beyond, last + 1)
    return numbers
