"""The free amounts of a cloud by row: the state that a plan changes, and copies for each trial.

The cloud in memory has its own free amounts, which claims and releases change
(:mod:`cpu_tiers.tools.cloud_model.cloud`). A :class:`FreeAmounts` begins with them. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from cpu_tiers.tools.cloud_model.cloud import Allocations, SimulatedCloud
from cpu_tiers.tools.cloud_model.providers import HostProviders, Row

Amounts = tuple[tuple[Row, int], ...]
"""The amounts that a server takes or would take, sorted by row."""


def amounts_of(allocations: Allocations) -> Amounts:
    """Return allocations by row, sorted."""
    rows = (
        ((uuid, name), amount)
        for uuid, amounts in allocations.items()
        for name, amount in amounts.items()
    )
    return tuple(sorted(rows))


_GROUP = "group "


def group_row(group: str, host: str) -> Row:
    """Return the row that counts how many servers of a group a host may still take."""
    return f"{_GROUP}{group}", host


def is_group(row: Row) -> bool:
    """Tell whether a row counts the servers of a group."""
    return row[0].startswith(_GROUP)


class FreeAmounts:
    """The free amounts of all rows, and how many servers of a group each host may still take.

    A copy shares the amounts of the beginning, and has only its changes for itself.

    :param amounts: the free amounts at the beginning; negative where more is allocated than the
        capacity.
    :param groups: the most servers that each anti-affinity group may have on a host.
    """

    __slots__ = ("_changed", "_groups", "_start")

    def __init__(
        self, amounts: Mapping[Row, int], groups: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        self._start, self._groups = amounts, groups
        self._changed: dict[Row, int] = {}

    @classmethod
    def of_cloud(
        cls, cloud: SimulatedCloud, groups: Mapping[str, int] = MappingProxyType({})
    ) -> FreeAmounts:
        """Return the free amounts of a cloud as they are now."""
        amounts = {
            row: stock.free
            for host in cloud.hosts
            for row, stock in zip(host.rows, host.stocks, strict=True)
        }
        return cls(amounts, groups)

    def copy(self) -> FreeAmounts:
        """Return free amounts that change by themselves."""
        free = FreeAmounts(self._start, self._groups)
        free._changed = dict(self._changed)
        return free

    def amounts(self) -> Mapping[Row, int]:
        """Return the free amounts of all rows."""
        return {**self._start, **self._changed}

    def of(self, row: Row) -> int:
        """Return the free amount of a row; 0 for an unknown row."""
        amount = self._changed.get(row)
        if amount is None:
            amount = self._start.get(row)
        if amount is None:
            amount = self._groups.get(row[0].removeprefix(_GROUP), 0)
        return amount

    def of_host(self, host: HostProviders) -> list[int]:
        """Return the free amount of each row of a host."""
        of_row = self.of if self._changed else self._start.__getitem__
        return list(map(of_row, host.rows))

    def fits(self, amounts: Amounts) -> bool:
        """Tell whether all rows have room for amounts."""
        return all(self.of(row) >= amount for row, amount in amounts)

    def take(self, amounts: Iterable[tuple[Row, int]], times: int = 1) -> None:
        """Take amounts of the rows a number of times; give the amounts back with -1."""
        for row, amount in amounts:
            self._changed[row] = self.of(row) - times * amount
