"""Our pinning beside Nova's, on random hosts and guests: whatever it can place, we can."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from nova import exception, objects
from nova.conf import CONF
from nova.virt import hardware

from cpu_tiers.guest.pinning import DoesNotFit, Limits, pin
from cpu_tiers.guest.usage import release, take
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestTopology, Pinning
from cpu_tiers.nova.topology import (
    to_compute_host,
    to_guest_topology,
    to_instance_topology,
    to_pinning,
)

RATIO = 1.5


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def host_cell(rng: random.Random, number: int, threads: int, *, legacy: bool) -> objects.NUMACell:
    cpus = range(10 * number, 10 * number + rng.choice([2, 4, 6, 8]))
    siblings = [set(cpus[i : i + threads]) for i in range(0, len(cpus), threads)]
    dedicated = {cpu for cpu in cpus if legacy or rng.random() < 0.8}
    if legacy or rng.random() < 0.5:  # whole cores, and whole cores of them taken
        dedicated = {cpu for core in siblings if core & dedicated for cpu in core}
    pinned = {cpu for cpu in dedicated if rng.random() < 0.2}
    memory = rng.choice([4, 8, 16])
    sizes = rng.choice([(4,), (4, 2048), (4, 2048)])
    return objects.NUMACell(
        id=number,
        cpuset=set(cpus) if legacy else set(cpus) - dedicated,
        pcpuset=dedicated,
        memory=memory,
        socket=number,
        cpu_usage=rng.randint(0, 3),
        memory_usage=rng.randint(0, 3),
        pinned_cpus=pinned,
        siblings=siblings,
        mempages=[
            objects.NUMAPagesTopology(
                size_kb=size,
                total=memory * 512 // size,
                used=rng.randint(0, 1),
                reserved=rng.randint(0, 1),
            )
            for size in sizes
        ],
    )


def instance_topology(rng: random.Random) -> objects.InstanceNUMATopology:
    policy = rng.choice(["dedicated", "dedicated", "mixed", "shared", None])
    threads = rng.choice([None, "prefer", "isolate", "require"])
    size = rng.choice([None, None, -1, -2, -3, 2048])
    cells, first = [], 0
    for number in range(rng.choice([1, 1, 2, 2, 3])):
        shared = 0 if policy == "dedicated" else rng.randint(1, 2)
        last = first + shared
        if policy in ("dedicated", "mixed"):
            last += rng.randint(1, 4)
        cells.append(
            objects.InstanceNUMACell(
                id=number,
                cpuset=set(range(first, first + shared)),
                pcpuset=set(range(first + shared, last)),
                memory=rng.choice([1, 2, 4]),
                pagesize=size,
                cpu_policy=policy,
                cpu_thread_policy=threads if policy in ("dedicated", "mixed") else None,
                cpuset_reserved=None,
                cpu_pinning_raw=None,
            )
        )
        first = last
    isolate = policy in ("dedicated", "mixed") and rng.random() < 0.4
    return objects.InstanceNUMATopology(
        cells=cells, emulator_threads_policy="isolate" if isolate else None
    )


def nova_places(
    host: objects.NUMATopology,
    guest: objects.InstanceNUMATopology,
    limits: objects.NUMATopologyLimits | None,
) -> objects.InstanceNUMATopology | None:
    """Nova's pinning, unless Nova itself cannot use it.

    It remembers what fitted by the ids of guest cells, which it changes to those
    of host cells, so some of what it returns it would refuse when asked again;
    and with ``isolate`` it may take a CPU for emulator threads whose sibling another
    guest has, and then fail to account for it.
    """
    placed = hardware.numa_fit_instance_to_host(host, copy.deepcopy(guest), {}, limits=limits)
    if placed is None:
        return None
    at = {cell.id: cell for cell in host.cells}
    try:
        for index, (asked, cell) in enumerate(zip(guest.cells, placed.cells, strict=True)):
            extra = int(index == 0 and guest.emulator_threads_isolated)
            again = copy.deepcopy(asked)
            if hardware._numa_fit_instance_cell(at[cell.id], again, limits, extra) is None:
                return None
        hardware.numa_usage_from_instance_numa(host, placed)
    except (
        exception.CPUPinningInvalid,
        exception.CPUPinningUnknown,
        exception.MemoryPageSizeNotSupported,
    ):
        return None
    return placed


def usage(host: objects.NUMATopology) -> list[Any]:
    return [
        (
            cell.pinned_cpus,
            cell.cpu_usage,
            cell.memory_usage,
            [(one.size_kb, one.used) for one in cell.mempages],
        )
        for cell in host.cells
    ]


@settings(max_examples=1500, deadline=None)
@given(st.integers(min_value=0))
def test_whatever_nova_can_place_we_can(seed: int) -> None:
    rng = random.Random(seed)
    legacy, threads = rng.random() < 0.4, rng.choice([1, 2, 2, 4])
    cells = [host_cell(rng, n, threads, legacy=legacy) for n in range(rng.randint(1, 4))]
    theirs = objects.NUMATopology(cells=cells)
    asked = instance_topology(rng)
    pack, limited = rng.random() < 0.5, rng.random() < 0.3
    CONF.set_override("packing_host_numa_cells_allocation_strategy", pack, group="compute")
    limits = objects.NUMATopologyLimits(cpu_allocation_ratio=RATIO, ram_allocation_ratio=RATIO)
    placed = nova_places(theirs, asked, limits if limited else None)

    guest, host = to_guest_topology(asked), to_compute_host(theirs)
    ours = Limits(cpu_allocation_ratio=RATIO, ram_allocation_ratio=RATIO) if limited else None
    try:
        pinning = pin(guest, host, pack=pack, limits=ours)
    except DoesNotFit as error:
        event("neither")
        if placed is not None:
            raise AssertionError(f"Nova can: {to_pinning(placed)}") from error
        return
    event("both" if placed is not None else "we alone")
    check_in_nova(theirs, guest, pinning)
    assert release(take(host, guest, pinning), guest, pinning) == host


def check_in_nova(theirs: objects.NUMATopology, guest: GuestTopology, pinning: Pinning) -> None:
    """Nova can account for our pinning, and does it as we do."""
    pinned = to_instance_topology(guest, pinning)
    after = hardware.numa_usage_from_instance_numa(theirs, pinned)
    assert to_compute_host(after) == take(to_compute_host(theirs), guest, pinning)
    assert to_pinning(pinned) == pinning
    freed = hardware.numa_usage_from_instance_numa(after, pinned, free=True)
    assert usage(freed) == usage(theirs)


def test_a_guest_there_and_back() -> None:
    asked = objects.InstanceNUMATopology(
        cells=[
            objects.InstanceNUMACell(
                id=1,
                cpuset={0},
                pcpuset={1, 2},
                memory=512,
                pagesize=2048,
                cpu_policy="mixed",
                cpu_thread_policy="prefer",
                cpuset_reserved={7},
                cpu_pinning_raw={"1": 5, "2": 6},
            )
        ],
        emulator_threads_policy="isolate",
    )
    pinning = Pinning(
        cells=(
            CellPinning(
                host_cell=1,
                cpu_pinning={1: 5, 2: 6},
                cpuset_reserved=CpuSet({7}),
                page_size_kb=2048,
            ),
        )
    )
    assert to_pinning(asked) == pinning
    guest = to_guest_topology(asked)
    assert (guest.cells[0].id, guest.page_size, guest.cpu_policy) == (0, 2048, "mixed")
    again = to_instance_topology(guest, pinning)
    for one in (again, asked):
        one.obj_reset_changes(recursive=True)
    assert again.obj_to_primitive() == asked.obj_to_primitive()
