"""Pin a guest: choose a host cell for each guest cell, and CPUs for the dedicated vCPUs.

``docs/reference/pinning.rst`` has the valid pinnings, and the four rules for the best of them, to
which the comments refer by their numbers. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.guest.cell_resources import Choice, Core, CpuNeed, choose, choose_pages, free_cores
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning

_BITS = 48
"""The bits of a cost for each rule. The sum for memory of 10^15 KiB on 64 cells takes 46 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The allocation ratios for shared vCPUs, and for the memory of guests with shared vCPUs."""

    cpu_allocation_ratio: float
    ram_allocation_ratio: float


class DoesNotFit(CpuTiersError):
    """A guest cannot be pinned on a host.

    :param reasons: by guest cell and host cell, the reason why the guest cell does not fit
        there. The reason is empty if the guest cell fits, but other guest cells need the same
        host cell.
    """

    def __init__(self, reasons: Mapping[int, Mapping[int, str]]) -> None:
        """Keep the reasons; the message has a line for all guest cells with the same reasons."""
        self.reasons = reasons
        cells_by_reasons: dict[tuple[tuple[int, str], ...], list[int]] = {}
        for cell, cell_reasons in reasons.items():
            cells_by_reasons.setdefault(tuple(cell_reasons.items()), []).append(cell)
        super().__init__(
            "\n".join(_line(cells, dict(reasons)) for reasons, cells in cells_by_reasons.items())
        )


class _Fit(NamedTuple):
    choice: Choice
    page_size_kb: int | None


def pin(
    guest: GuestTopology,
    host: ComputeHost,
    *,
    pack: bool = False,
    limits: Limits | None = None,
    allowed: Mapping[int, Collection[int]] | None = None,
) -> Pinning:
    """Return the best pinning of a guest on the free CPUs and memory of a host.

    :param pack: Nova's option ``packing_host_numa_cells_allocation_strategy``.
    :param allowed: by guest cell, the host cells where the guest cell may be. A guest cell that
        is not a key may be on any host cell.
    :raises DoesNotFit: there is no valid pinning.
    """
    fits = _fits(guest, host, limits, allowed or {})
    columns = assign(_costs(guest, host, fits, pack=pack), len(host.cells))
    if columns is None:
        raise DoesNotFit(_reasons(guest, host, fits))
    return Pinning(
        cells=tuple(
            _pinned(cell, host.cells[column], cell_fits[column])
            for cell, column, cell_fits in zip(guest.cells, columns, fits, strict=True)
        )
    )


def _costs(
    guest: GuestTopology, host: ComputeHost, fits: Sequence[Sequence[_Fit | str]], *, pack: bool
) -> list[list[int | None]]:
    """Return the cost of each guest cell on each host cell; ``None`` without a fit.

    All rules are in a single integer, the first rule in the highest bits. The least sum of costs
    is therefore the best pinning by all rules.
    """
    places = _places(guest, host, pack=pack)
    ranks = {cell.id: rank for rank, cell in enumerate(sorted(host.cells, key=lambda c: c.id))}
    # Rule 4 is a number with a digit for each guest cell, to the base of the number of host
    # cells; it takes this many bits.
    rank_bits = max(1, (len(ranks) ** len(fits)).bit_length())
    return [
        [
            None
            if isinstance(fit, str)
            else (
                ((fit.choice.apart << 2 * _BITS) + place << _BITS) + fit.choice.whole << rank_bits
            )
            + ranks[cell.id] * len(ranks) ** (len(fits) - 1 - row)
            for cell, place, fit in zip(host.cells, places, cell_fits, strict=True)
        ]
        for row, cell_fits in enumerate(fits)
    ]


def _fits(
    guest: GuestTopology,
    host: ComputeHost,
    limits: Limits | None,
    allowed: Mapping[int, Collection[int]],
) -> list[list[_Fit | str]]:
    """Return the fit of each guest cell on each host cell, or the reason why there is none."""
    cores = [free_cores(cell) for cell in host.cells]
    # Most guests have equal cells: compute their fits once.
    known: dict[tuple[object, ...], list[_Fit | str]] = {}
    fits = []
    for index, cell in enumerate(guest.cells):
        # Nova's numa_fit_instance_to_host puts the CPU of emulator threads on guest cell 0 as
        # well, to make its place predictable.
        emulator = index == 0 and guest.isolates_emulator
        need = CpuNeed(len(cell.pcpuset), emulator, guest.cpu_thread_policy)
        key = (need, len(cell.cpuset), cell.memory_mb)
        if key not in known:
            known[key] = [
                _fit(guest, cell, need, at, free, limits)
                for at, free in zip(host.cells, cores, strict=True)
            ]
        fits.append(known[key])
        if cell.id in allowed:
            fits[-1] = [
                fit if at.id in allowed[cell.id] else "it is not allowed there"
                for at, fit in zip(host.cells, known[key], strict=True)
            ]
    return fits


def _fit(
    guest: GuestTopology,
    cell: GuestCell,
    need: CpuNeed,
    at: ComputeCell,
    cores: Sequence[Core],
    limits: Limits | None,
) -> _Fit | str:
    if len(cell.cpuset) > len(at.shared):
        return f"it needs {len(cell.cpuset)} shared CPUs, {len(at.shared)} are there"
    pages = choose_pages(guest, cell, at)
    if isinstance(pages, str):
        return pages
    # Nova's scheduler passes limits. _numa_fit_instance_cell ignores them for guests whose
    # vCPUs are all dedicated.
    if limits is not None and guest.cpu_policy != "dedicated":
        if at.used.shared_vcpus + len(cell.cpuset) > len(at.shared) * limits.cpu_allocation_ratio:
            return (
                f"it needs {len(cell.cpuset)} shared vCPUs, {at.used.shared_vcpus} use"
                f" {len(at.shared)} CPUs at an allocation ratio of {limits.cpu_allocation_ratio:g}"
            )
        if at.used.memory_mb + cell.memory_mb > at.memory_mb * limits.ram_allocation_ratio:
            return (
                f"it needs {cell.memory_mb} MiB, {at.used.memory_mb} of {at.memory_mb} MiB are in"
                f" use at an allocation ratio of {limits.ram_allocation_ratio:g}"
            )
    choice = choose(at, cores, need)
    return choice if isinstance(choice, str) else _Fit(choice, pages)


def _places(guest: GuestTopology, host: ComputeHost, *, pack: bool) -> list[int]:
    """Return the cost of rule 2 for each host cell: a lower number is preferred."""
    sign = 1 if pack else -1
    by_cpus = guest.is_pinned
    return [
        ((len(cell.free_cpus) if by_cpus else -cell.used.shared_vcpus) << _BITS) * sign
        + (cell.memory_mb - cell.used.memory_mb) * sign
        for cell in host.cells
    ]


def _pinned(cell: GuestCell, at: ComputeCell, fit: _Fit | str) -> CellPinning:
    assert not isinstance(fit, str), "no cost, no assignment"  # noqa: S101
    return CellPinning(
        host_cell=at.id,
        cpu_pinning=dict(zip(sorted(cell.pcpuset), fit.choice.vcpus, strict=True)),
        cpuset_reserved=CpuSet(fit.choice.emulator),
        page_size_kb=fit.page_size_kb,
    )


def _reasons(
    guest: GuestTopology, host: ComputeHost, fits: Sequence[Sequence[_Fit | str]]
) -> dict[int, dict[int, str]]:
    return {
        cell.id: {
            at.id: fit if isinstance(fit, str) else ""
            for at, fit in zip(host.cells, cell_fits, strict=True)
        }
        for cell, cell_fits in zip(guest.cells, fits, strict=True)
    }


def _line(guest_cells: Collection[int], reasons: Mapping[int, str]) -> str:
    by_reason: dict[str, list[int]] = {}
    for cell, reason in reasons.items():
        by_reason.setdefault(reason, []).append(cell)
    there = "; ".join(
        f"{_named('host', cells)}: {reason or 'it fits, but another guest cell may need it'}"
        for reason, cells in by_reason.items()
    )
    return f"{_named('guest', guest_cells)} at {there or 'a host without cells'}"


def _named(whose: str, cells: Collection[int]) -> str:
    return f"{whose} cell{'s' if len(cells) > 1 else ''} {CpuSet(cells)}"


def assign(costs: Sequence[Sequence[int | None]], columns: int) -> list[int] | None:
    """Return a different column for each row, with the least sum of costs.

    This is the Hungarian method (H. W. Kuhn, The Hungarian method for the assignment problem,
    1955), whose time grows with the cube of the size.

    :param costs: for each row the cost of each column; ``None`` forbids the pair.
    :returns: ``None`` if there is no assignment without a forbidden pair.
    """
    owner: dict[int, int] = {}  # column to row
    # cost - row_price - column_price is never negative, and 0 for the pairs of the assignment:
    # this is what makes the assignment of all rows so far the cheapest.
    row_price, column_price = [0] * len(costs), [0] * columns
    for row in range(len(costs)):
        if not _seat(row, costs, owner, row_price, column_price):
            return None
    column_of = {row: column for column, row in owner.items()}
    return [column_of[row] for row in range(len(costs))]


def _seat(
    row: int,
    costs: Sequence[Sequence[int | None]],
    owner: dict[int, int],
    row_price: list[int],
    column_price: list[int],
) -> bool:
    """Assign a column to another row; reassign earlier rows where this is cheaper.

    This is Dijkstra's algorithm over the columns, from the new row to the nearest free column.

    :returns: whether there is an assignment that includes the row.
    """
    slack: dict[int, int] = {}
    came_from: dict[int, int | None] = {}
    seen: list[int] = []
    last: int | None = None
    current: int | None = row
    while current is not None:
        for column, cost in enumerate(costs[current]):
            if cost is None or column in seen:
                continue
            reduced_cost = cost - row_price[current] - column_price[column]
            if column not in slack or reduced_cost < slack[column]:
                slack[column], came_from[column] = reduced_cost, last
        if not slack:
            return False
        last = min(slack, key=slack.__getitem__)
        step = slack.pop(last)
        for column in seen:
            column_price[column] -= step
            row_price[owner[column]] += step
        row_price[row] += step
        for column in slack:
            slack[column] -= step
        seen.append(last)
        current = owner.get(last)
    # Walk back along the path: each column goes to the row that reached the column.
    while last is not None:
        before = came_from[last]
        owner[last] = row if before is None else owner[before]
        last = before
    return True
