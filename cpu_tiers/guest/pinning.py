"""Which host cell keeps which cell of a guest, and which CPUs it gets there.

A pinning is valid if

* guest cells are on host cells of their own, among those that are allowed;
* each dedicated vCPU has a free dedicated CPU of its cell to itself, as the
  thread policy asks (:mod:`~cpu_tiers.guest.cores`), and so have isolated
  emulator threads, on the host cell of guest cell 0;
* memory and pages suffice (:mod:`~cpu_tiers.guest.memory`);
* no cell has more shared vCPUs than its host cell has shared CPUs, and with
  limits these, and memory, are not overcommitted beyond the ratios.

If there is one, the best is found. These rules decide, each where those above
it are equal; a sum is over the cells of the guest:

1. as few cells as can be have their vCPUs apart though ``prefer`` wants siblings;
2. ``spread``: the most free CPUs together on the host cells that are used, then
   the most free memory; ``pack``: the least. For a guest without dedicated CPUs
   the fewest, or most, shared vCPUs count, as in Nova;
3. the fewest whole cores are broken;
4. guest cell 0 is on the host cell with the lowest id, then guest cell 1, ...
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cpu_tiers.errors import CpuTiersError
from cpu_tiers.guest.assignment import assign
from cpu_tiers.guest.cores import Choice, Core, Demand, choose, free_cores
from cpu_tiers.guest.memory import choose_pages, is_pinned
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning

_BITS = 48
"""Room for the sum of one rule's costs: memory of 10^15 KiB on 64 cells takes 46."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far shared vCPUs, and the memory of guests that have some, are overcommitted."""

    cpu_allocation_ratio: float
    ram_allocation_ratio: float


class DoesNotFit(CpuTiersError):
    """A guest cannot be pinned on a host.

    :param reasons: guest cell to host cell to why it does not fit there; empty
        text where it does, but is not the only one to want that host cell.
    """

    def __init__(self, reasons: Mapping[int, Mapping[int, str]]) -> None:
        """Keep the reasons and make one message of them."""
        self.reasons = reasons
        lines = [_line(cell, of_cell) for cell, of_cell in reasons.items()]
        super().__init__("\n".join(lines))


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
    """Return the best pinning of a guest on what is free of a host.

    :param pack: Nova's ``packing_host_numa_cells_allocation_strategy``.
    :param allowed: host cells for a guest cell; any for one that is not named.
    :raises DoesNotFit: there is none.
    """
    fits = _fits(guest, host, limits, allowed or {})
    places = _places(guest, host, pack=pack)
    ranks = {cell.id: rank for rank, cell in enumerate(sorted(host.cells, key=lambda c: c.id))}
    room = max(1, (len(ranks) ** len(fits)).bit_length())
    costs = [
        [
            None
            if isinstance(fit, str)
            else (((fit.choice.apart << 2 * _BITS) + place << _BITS) + fit.choice.whole << room)
            + ranks[cell.id] * len(ranks) ** (len(fits) - 1 - row)
            for cell, place, fit in zip(host.cells, places, of_cell, strict=True)
        ]
        for row, of_cell in enumerate(fits)
    ]
    columns = assign(costs, len(host.cells))
    if columns is None:
        raise DoesNotFit(_reasons(guest, host, fits))
    return Pinning(
        cells=tuple(
            _pinned(cell, host.cells[column], of_cell[column])
            for cell, column, of_cell in zip(guest.cells, columns, fits, strict=True)
        )
    )


def _fits(
    guest: GuestTopology,
    host: ComputeHost,
    limits: Limits | None,
    allowed: Mapping[int, Collection[int]],
) -> list[list[_Fit | str]]:
    """Return for each guest cell how it fits each host cell, or why not."""
    cores = [free_cores(cell) for cell in host.cells]
    known: dict[tuple[object, ...], list[_Fit | str]] = {}
    fits = []
    isolated = guest.emulator_threads_policy == "isolate" and is_pinned(guest)
    for index, cell in enumerate(guest.cells):
        emulator = index == 0 and isolated
        demand = Demand(len(cell.pcpuset), emulator, guest.cpu_thread_policy)
        key = (demand, len(cell.cpuset), cell.memory_mb)
        if key not in known:
            known[key] = [
                _fit(guest, cell, demand, at, free, limits)
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
    demand: Demand,
    at: ComputeCell,
    cores: Sequence[Core],
    limits: Limits | None,
) -> _Fit | str:
    if len(cell.cpuset) > len(at.shared):
        return f"it needs {len(cell.cpuset)} shared CPUs, {len(at.shared)} are there"
    pages = choose_pages(guest, cell, at)
    if isinstance(pages, str):
        return pages
    if limits is not None and guest.cpu_policy != "dedicated":
        if at.used.shared_vcpus + len(cell.cpuset) > len(at.shared) * limits.cpu_allocation_ratio:
            return f"{at.used.shared_vcpus} vCPUs share {len(at.shared)} CPUs: no room for more"
        if at.used.memory_mb + cell.memory_mb > at.memory_mb * limits.ram_allocation_ratio:
            return f"{at.used.memory_mb} of {at.memory_mb} MiB are in use: no room for more"
    choice = choose(at, cores, demand)
    return choice if isinstance(choice, str) else _Fit(choice, pages)


def _places(guest: GuestTopology, host: ComputeHost, *, pack: bool) -> list[int]:
    """Return for each host cell how late it is taken: rule 2 as one number."""
    sign = 1 if pack else -1
    by_cpus = is_pinned(guest)
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
            for at, fit in zip(host.cells, of_cell, strict=True)
        }
        for cell, of_cell in zip(guest.cells, fits, strict=True)
    }


def _line(cell: int, reasons: Mapping[int, str]) -> str:
    there = "; ".join(
        f"host cell {at}: {why or 'it fits, but another guest cell may need it'}"
        for at, why in reasons.items()
    )
    return f"guest cell {cell} at {there or 'a host without cells'}"
