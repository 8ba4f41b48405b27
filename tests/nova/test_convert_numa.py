"""Nova's NUMA objects as values, and values as Nova's objects. test_pinning compares many more."""

from typing import Any

import pytest
from nova import objects
from nova.virt import hardware

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import Pages
from cpu_tiers.nova.convert_numa import (
    to_compute_host,
    to_guest_topology,
    to_pinning,
)
from tests.nova.topologies import to_instance_topology


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def host_cell(**values: Any) -> objects.NUMACell:
    """Return a host cell with shared CPUs 0 and 1 and dedicated CPUs 2 and 3."""
    fields = {
        "id": 0,
        "cpuset": {0, 1},
        "pcpuset": {2, 3},
        "pinned_cpus": {3},
        "siblings": [{0, 1}, {2, 3, 9}, {8}],
        "memory": 64,
        "cpu_usage": 5,
        "memory_usage": 16,
        "mempages": [
            objects.NUMAPagesTopology(size_kb=4, total=100, used=0, reserved=0),
            objects.NUMAPagesTopology(size_kb=2048, total=8, used=3, reserved=1),
        ],
    }
    return objects.NUMACell(**(fields | values))


def test_a_host() -> None:
    """CPUs 8 and 9 are CPUs of the host that Nova may not use, so they are in no core."""
    topology = objects.NUMATopology(cells=[host_cell(socket=1)])
    host = to_compute_host(topology, cpu_shared_set=CpuSet({0, 1}))
    assert host.cpu_shared_set == CpuSet({0, 1})
    (cell,) = host.cells
    assert (cell.shared, cell.dedicated) == (CpuSet({0, 1}), CpuSet({2, 3}))
    assert cell.cores == (CpuSet({0, 1}), CpuSet({2, 3}))
    assert (cell.memory_mb, cell.socket) == (64, 1)
    assert cell.pages == (Pages(size_kb=4, total=100), Pages(size_kb=2048, total=8))
    assert cell.reserved_pages == {2048: 1}
    assert (cell.used.pinned, cell.used.shared_vcpus) == (CpuSet({3}), 5)
    assert cell.used.memory_mb == 16
    assert cell.used.pages == {2048: 3}


def test_a_host_with_unknown_sockets() -> None:
    (cell,) = to_compute_host(objects.NUMATopology(cells=[host_cell()])).cells
    assert cell.socket is None


def test_a_pinned_cpu_that_is_not_dedicated_is_refused() -> None:
    topology = objects.NUMATopology(cells=[host_cell(pinned_cpus={0})])
    with pytest.raises(InvalidInput, match="CPU 0 is pinned but not dedicated"):
        to_compute_host(topology)


def guest_cell(number: int, pagesize: int | None, **values: Any) -> objects.InstanceNUMACell:
    fields = {
        "id": number,
        "cpuset": {2 * number},
        "pcpuset": {2 * number + 1},
        "memory": 128,
        "pagesize": pagesize,
        "cpu_policy": "mixed",
        "cpu_thread_policy": "isolate",
        "cpuset_reserved": None,
        "cpu_pinning_raw": None,
    }
    return objects.InstanceNUMACell(**(fields | values))


@pytest.mark.parametrize(
    ("sizes", "page_size"),
    [
        pytest.param([None, None], None, id="no size"),
        pytest.param([hardware.MEMPAGES_SMALL] * 2, "small", id="small"),
        pytest.param([hardware.MEMPAGES_LARGE] * 2, "large", id="large"),
        pytest.param([hardware.MEMPAGES_ANY] * 2, "any", id="any"),
        pytest.param([2048, 2048], 2048, id="a size in kB"),
        pytest.param([2048, 4], "any", id="pinned to pages of two sizes: the size was left open"),
    ],
)
def test_the_page_size_of_a_guest(sizes: list[int | None], page_size: object) -> None:
    cells = [guest_cell(number, size) for number, size in enumerate(sizes)]
    guest = to_guest_topology(objects.InstanceNUMATopology(cells=cells))
    assert guest.page_size == page_size


def test_a_guest_with_a_pinning() -> None:
    """The guest cells are on host cells 3 and 1: Nova writes these ids over those of the guest."""
    pins = [{1: 7}, {3: 5}]
    cells = [
        guest_cell(0, 2048, cpuset_reserved={6}),
        guest_cell(1, 2048),
    ]
    for cell, host, cpu_pinning in zip(cells, (3, 1), pins, strict=True):
        cell.id, cell.cpu_pinning = host, cpu_pinning
    topology = objects.InstanceNUMATopology(cells=cells, emulator_threads_policy="isolate")
    guest, pinning = to_guest_topology(topology, realtime=CpuSet({1})), to_pinning(topology)
    assert guest == GuestTopology(
        cells=(
            GuestCell(id=0, cpuset=CpuSet({0}), pcpuset=CpuSet({1}), memory_mb=128),
            GuestCell(id=1, cpuset=CpuSet({2}), pcpuset=CpuSet({3}), memory_mb=128),
        ),
        cpu_policy="mixed",
        cpu_thread_policy="isolate",
        emulator_threads_policy="isolate",
        page_size=2048,
        realtime=CpuSet({1}),
    )
    assert pinning == Pinning(
        cells=(
            CellPinning(
                host_cell=3, cpu_pinning={1: 7}, cpuset_reserved=CpuSet({6}), page_size_kb=2048
            ),
            CellPinning(host_cell=1, cpu_pinning={3: 5}, page_size_kb=2048),
        )
    )
    back = to_instance_topology(guest, pinning)
    for each in (back, topology):  # the changed fields are a list in the order of a set
        each.obj_reset_changes(recursive=True)
    assert back.obj_to_primitive() == topology.obj_to_primitive()


def test_a_guest_that_is_not_pinned() -> None:
    cell = GuestCell(id=0, cpuset=CpuSet({0}), pcpuset=CpuSet(), memory_mb=128)
    topology = to_instance_topology(GuestTopology(cells=(cell,), page_size="large"))
    (made,) = topology.cells
    assert (made.id, made.cpuset, made.pcpuset, made.memory) == (0, {0}, set(), 128)
    assert made.pagesize == hardware.MEMPAGES_LARGE
    assert (made.cpu_pinning, made.cpuset_reserved) == (None, None)
    assert to_pinning(topology) == Pinning(
        cells=(CellPinning(host_cell=0, page_size_kb=hardware.MEMPAGES_LARGE),)
    )


def test_a_topology_without_cells() -> None:
    assert to_guest_topology(objects.InstanceNUMATopology(cells=[])) == GuestTopology(cells=())
