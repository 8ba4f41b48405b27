"""The largest number of packages by trying all of them; shares no code with cpu_tiers."""

import functools
from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

Row = TypeVar("Row", bound=Hashable)


def most_packages(packages: Sequence[Mapping[Row, int]], room: Mapping[Row, int]) -> list[int]:
    """Return the numbers of the packages of a largest packing, a number for each package."""
    rows = list(room)
    takes = [tuple(package.get(row, 0) for row in rows) for package in packages]

    @functools.cache
    def largest(left: tuple[int, ...]) -> tuple[int, ...]:
        found: tuple[int, ...] = ()
        for number, take in enumerate(takes):
            if all(amount <= free for amount, free in zip(take, left, strict=True)):
                after = tuple(free - amount for amount, free in zip(take, left, strict=True))
                found = max(found, (number, *largest(after)), key=len)
        return found

    return list(largest(tuple(room.values())))
