"""cpu-tiers and Nova pin random guests on random hosts: cpu-tiers places every guest of Nova."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import random
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from nova import objects
from nova.conf import CONF
from nova.virt import hardware

from cpu_tiers.guest.pinning import DoesNotFit, Limits, pin
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestTopology, Pinning
from cpu_tiers.nova.convert_numa import (
    to_compute_host,
    to_guest_topology,
    to_pinning,
)
from tests.draws import drawn
from tests.nova.topologies import (
    host_cell,
    instance_topology,
    nova_places,
    to_instance_topology,
)

RATIO = 1.5


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def usage(host: objects.NUMATopology) -> list[Any]:
    return [
        (
            cell.pinned_cpus,
            cell.cpu_usage,
            cell.memory_usage,
            [(pages.size_kb, pages.used) for pages in cell.mempages],
        )
        for cell in host.cells
    ]


@drawn(1500)
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


def check_in_nova(theirs: objects.NUMATopology, guest: GuestTopology, pinning: Pinning) -> None:
    """Nova adds a pinned guest to the usage of the host, and takes it off again."""
    pinned = to_instance_topology(guest, pinning)
    after = hardware.numa_usage_from_instance_numa(theirs, pinned)
    assert to_pinning(pinned) == pinning
    freed = hardware.numa_usage_from_instance_numa(after, pinned, free=True)
    assert usage(freed) == usage(theirs)


def test_a_guest_survives_the_conversion_to_nova_and_back() -> None:
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
    for topology in (again, asked):
        topology.obj_reset_changes(recursive=True)
    assert again.obj_to_primitive() == asked.obj_to_primitive()
