"""The pinning of small random guests on small random hosts, against trying everything.

What is valid and which is best is written down here a second time, naively.
"""

import itertools
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from cpu_tiers.guest.pinning import DoesNotFit, Limits, assign, pin
from cpu_tiers.model.compute import ComputeCell, ComputeHost, Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import CpuPolicy, PageSize, ThreadPolicy
from cpu_tiers.model.guest import GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import Pages
from tests.draws import drawn

LIMITS = Limits(cpu_allocation_ratio=1.5, ram_allocation_ratio=1.5)


class Options(NamedTuple):
    pack: bool
    limits: Limits | None
    allowed: dict[int, list[int]]


def cell(rng: random.Random, number: int, *, both: bool) -> ComputeCell:
    """A cell of up to 6 CPUs on cores of up to 4; ``both``: each is shared and dedicated."""
    cpus = range(10 * number, 10 * number + rng.choice([0, 1, 2, 4, 4, 6, 6]))
    roles = dict(zip(cpus, rng.choices("DDDDDPS", k=len(cpus)), strict=True))
    dedicated = CpuSet(cpu for cpu in cpus if both or roles[cpu] != "S")
    left, cores = list(cpus), []
    while left:
        size = rng.choice([1, 2, 2, 2, 3, 4])
        cores.append(CpuSet(left[:size]))
        del left[:size]
    sizes = rng.choice([(), (4,), (4, 2048), (2048, 4096)])
    memory_mb = rng.choice([0, 8, 16, 16])
    return ComputeCell(
        id=number,
        shared=dedicated if both else CpuSet(set(cpus) - dedicated),
        dedicated=dedicated,
        memory_mb=memory_mb,
        # one that is named in no core is a core of its own
        cores=tuple(core for core in cores if len(core) > 1 or rng.random() < 0.5),
        pages=tuple(Pages(size_kb=size, total=memory_mb * 512 // size) for size in sizes),
        reserved_pages={size: rng.randint(0, 1) for size in sizes},
        used=Usage(
            pinned=CpuSet(cpu for cpu in dedicated if roles[cpu] == "P"),
            shared_vcpus=rng.randint(0, 3),
            memory_mb=rng.randint(0, 4),
            pages={size: rng.randint(1, 2) for size in sizes if rng.random() < 0.5},
        ),
    )


def some_host(rng: random.Random) -> ComputeHost:
    both = rng.random() < 0.4
    ids = rng.sample(range(3), k=rng.randint(1, 3))
    return ComputeHost(cells=tuple(cell(rng, number, both=both) for number in ids))


def some_guest(rng: random.Random) -> GuestTopology:
    policies: list[CpuPolicy | None] = ["dedicated", "dedicated", "mixed", "mixed", "shared", None]
    threads: list[ThreadPolicy | None] = [None, "prefer", "isolate", "require", "require"]
    pages: list[PageSize | None] = [None, None, None, "small", "large", "any", 2048]
    policy = rng.choice(policies)
    is_pinned = policy in ("dedicated", "mixed")
    cells, first = [], 0
    for number in range(rng.choice([0, 1, 1, 1, 2, 2, 2, 3])):
        shared = 0 if policy == "dedicated" else rng.randint(0, 2)
        last = first + shared + (rng.randint(0, 4) if is_pinned else 0)
        cells.append(
            GuestCell(
                id=number,
                cpuset=CpuSet(range(first, first + shared)),
                pcpuset=CpuSet(range(first + shared, last)),
                memory_mb=rng.choice([0, 1, 2, 4]),
            )
        )
        first = last
    return GuestTopology(
        cells=tuple(cells),
        cpu_policy=policy,
        cpu_thread_policy=rng.choice(threads),
        emulator_threads_policy="isolate" if is_pinned and rng.random() < 0.5 else None,
        page_size=rng.choice(pages),
    )


def some_options(rng: random.Random) -> Options:
    allowed = {cell: rng.choices(range(3), k=2) for cell in range(3) if rng.random() < 0.2}
    return Options(rng.random() < 0.5, rng.choice([None, LIMITS]), allowed)


def all_cores(at: ComputeCell) -> list[frozenset[int]]:
    named = frozenset[int]().union(*at.cores)
    return [*at.cores, *(frozenset({cpu}) for cpu in (at.dedicated | at.shared) - named)]


def page_sizes(guest: GuestTopology, cell: GuestCell, at: ComputeCell) -> set[int | None]:
    """The page sizes that would do; ``{None}`` where none is asked for and memory suffices."""
    exclusive = guest.cpu_policy in ("dedicated", "mixed")
    sizes = {pages.size_kb: pages.total for pages in at.pages}

    def is_free(size: int, *, to_itself: bool) -> bool:
        taken = at.used.pages.get(size, 0) + at.reserved_pages[size] if to_itself else 0
        needed, rest = divmod(cell.memory_mb * 1024, size)
        return not rest and needed <= sizes[size] - taken

    if guest.page_size is None:
        if sizes:
            return {None} if is_free(min(sizes), to_itself=exclusive) else set()
        free = at.memory_mb - (at.used.memory_mb if exclusive else 0)
        return {None} if cell.memory_mb <= free else set()
    return {
        size
        for size in sizes
        if is_free(size, to_itself=True)
        and (
            guest.page_size in ("any", size)
            or guest.page_size == ("small" if size == min(sizes) else "large")
        )
    }


def is_valid(
    guest: GuestTopology, index: int, at: ComputeCell, vcpus: set[int], extra: set[int]
) -> bool:
    """Whether the dedicated vCPUs and emulator threads of a guest cell may be on these CPUs."""
    free = at.dedicated - at.used.pinned
    needs_extra = index == 0 and guest.emulator_threads_policy == "isolate"
    if len(vcpus) != len(guest.cells[index].pcpuset) or len(extra) != needs_extra:
        return False
    if vcpus & extra or not vcpus | extra <= free:
        return False
    used = [core for core in all_cores(at) if core & (vcpus | extra)]
    if guest.cpu_thread_policy == "isolate":
        return all(
            len(core & (vcpus | extra)) == 1
            and core <= free
            and (len(core) == 1 or at.shared == at.dedicated)
            for core in used
        )
    if guest.cpu_thread_policy == "require":
        odd = [core for core in used if len(core & vcpus) == 1]
        return not odd or (len(odd) == 1 and len(odd[0] & free) > 1)
    return True


def rank(
    guest: GuestTopology, at: ComputeCell, vcpus: set[int], extra: set[int]
) -> tuple[int, int]:
    """Whether vCPUs are apart though siblings are preferred; how many whole cores are broken."""
    free = at.dedicated - at.used.pinned
    odd = [core for core in all_cores(at) if len(core & vcpus) == 1]
    broken = [core for core in all_cores(at) if core <= free and core & (vcpus | extra)]
    return (len(odd) > 1 and guest.cpu_thread_policy in (None, "prefer"), len(broken))


def within_limits(cell: GuestCell, at: ComputeCell, limits: Limits) -> bool:
    return (
        at.used.shared_vcpus + len(cell.cpuset) <= 1.5 * len(at.shared)
        and at.used.memory_mb + cell.memory_mb <= 1.5 * at.memory_mb
        and limits is LIMITS
    )


def may_be_on(guest: GuestTopology, cell: GuestCell, at: ComputeCell, chosen: Options) -> bool:
    return (
        at.id in chosen.allowed.get(cell.id, [at.id])
        and len(cell.cpuset) <= len(at.shared)
        and bool(page_sizes(guest, cell, at))
        and (
            chosen.limits is None
            or guest.cpu_policy == "dedicated"
            or within_limits(cell, at, chosen.limits)
        )
    )


def best_of_cell(guest: GuestTopology, index: int, at: ComputeCell) -> tuple[int, int] | None:
    ranks = [
        rank(guest, at, set(vcpus), set(extra))
        for vcpus in itertools.combinations(at.dedicated, len(guest.cells[index].pcpuset))
        for extra in [(), *((cpu,) for cpu in at.dedicated)]
        if is_valid(guest, index, at, set(vcpus), set(extra))
    ]
    return min(ranks, default=None)


def value(
    guest: GuestTopology, at: list[ComputeCell], ranks: list[tuple[int, int]], *, pack: bool
) -> tuple[Any, ...]:
    sign = 1 if pack else -1
    cpus = sum(len(cell.dedicated - cell.used.pinned) for cell in at)
    if guest.cpu_policy not in ("dedicated", "mixed"):
        cpus = -sum(cell.used.shared_vcpus for cell in at)
    memory = sum(cell.memory_mb - cell.used.memory_mb for cell in at)
    apart, whole = (sum(column) for column in zip((0, 0), *ranks, strict=True))
    return (apart, sign * cpus, sign * memory, whole, [cell.id for cell in at])


def all_values(
    guest: GuestTopology, host: ComputeHost, chosen: Options
) -> Iterator[tuple[Any, ...]]:
    """How good each way to place the cells is, each with its best CPUs."""
    best = {
        (index, at.id): best_of_cell(guest, index, at)
        for index, cell in enumerate(guest.cells)
        for at in host.cells
        if may_be_on(guest, cell, at, chosen)
    }
    for cells in itertools.permutations(host.cells, len(guest.cells)):
        ranks = [best.get((index, at.id)) for index, at in enumerate(cells)]
        if None not in ranks:
            known = [one for one in ranks if one is not None]
            yield value(guest, list(cells), known, pack=chosen.pack)


def value_of(
    guest: GuestTopology, host: ComputeHost, pinning: Pinning, chosen: Options
) -> tuple[Any, ...]:
    """Check a pinning, and return how good it is."""
    at = [host.cell(pinned.host_cell) for pinned in pinning.cells]
    assert len({cell.id for cell in at}) == len(guest.cells)
    ranks = []
    for index, (cell, pinned, host_cell) in enumerate(
        zip(guest.cells, pinning.cells, at, strict=True)
    ):
        assert CpuSet(pinned.cpu_pinning) == cell.pcpuset
        vcpus, extra = set(pinned.cpu_pinning.values()), set(pinned.cpuset_reserved)
        assert may_be_on(guest, cell, host_cell, chosen)
        assert pinned.page_size_kb in page_sizes(guest, cell, host_cell)
        assert is_valid(guest, index, host_cell, vcpus, extra)
        ranks.append(rank(guest, host_cell, vcpus, extra))
    return value(guest, at, ranks, pack=chosen.pack)


@drawn(3000)
@given(st.integers(min_value=0))
def test_the_best_pinning_is_found(seed: int) -> None:
    rng = random.Random(seed)
    guest, host, chosen = some_guest(rng), some_host(rng), some_options(rng)
    values = list(all_values(guest, host, chosen))
    event("fits" if values else "does not fit")
    if not values:
        with pytest.raises(DoesNotFit) as caught:
            pin(guest, host, **chosen._asdict())
        assert set(caught.value.reasons) == {cell.id for cell in guest.cells}
        return
    pinning = pin(guest, host, **chosen._asdict())
    assert value_of(guest, host, pinning, chosen) == min(values)


@given(
    st.integers(0, 4).flatmap(
        lambda columns: st.lists(
            st.lists(st.none() | st.integers(-9, 9), min_size=columns, max_size=columns),
            max_size=4,
        )
    )
)
def test_assignments(costs: list[list[int | None]]) -> None:
    columns = len(costs[0]) if costs else 0

    def total(places: tuple[int, ...]) -> int | None:
        picked = [of_row[place] for of_row, place in zip(costs, places, strict=True)]
        return None if None in picked else sum(cost for cost in picked if cost is not None)

    every = [total(places) for places in itertools.permutations(range(columns), len(costs))]
    sums = [one for one in every if one is not None]
    found = assign(costs, columns)
    assert (found is None) == (not sums)
    if found is not None:
        assert len(set(found)) == len(found)
        assert total(tuple(found)) == min(sums)
