"""The usage of a host after guests come and go, worked out by hand."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.guest.pinning import DoesNotFit, pin
from cpu_tiers.guest.usage import release, take
from cpu_tiers.model.compute import Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, Pinning
from tests.unit.guest.drawings import PAGED, guest, host


def test_take_and_release() -> None:
    asked = guest((0, 1), page_size=2048, memory_mb=4)
    pinning = pin(asked, PAGED)
    after = take(PAGED, asked, pinning)
    assert after.cells[0].used == Usage(pinned=CpuSet({0}), memory_mb=4, pages={2048: 2})
    assert release(after, asked, pinning) == PAGED
    with pytest.raises(DoesNotFit, match="needs 4096 kB in whole pages, free are 2048 kB"):
        pin(asked, after)
    with pytest.raises(InvalidInput, match="host NUMA cell 0: CPU 0 is pinned already"):
        take(after, asked, pinning)
    with pytest.raises(InvalidInput, match="host NUMA cell 0: CPU 0 is not pinned"):
        release(PAGED, asked, pinning)


def test_isolated_guests_take_the_siblings() -> None:
    legacy = host("bb bb")
    asked = guest((0, 1), threads="isolate")
    assert take(legacy, asked, pin(asked, legacy)).cells[0].used.pinned == CpuSet({0, 1})


def test_a_pinning_of_another_host() -> None:
    pinning = Pinning(cells=(CellPinning(host_cell=0, cpu_pinning={0: 9}),))
    with pytest.raises(InvalidInput, match="host NUMA cell 0: CPU 9 is not dedicated"):
        take(host(".."), guest((0, 1)), pinning)
    pinning = Pinning(cells=(CellPinning(host_cell=5, cpu_pinning={0: 0}),))
    with pytest.raises(InvalidInput, match="host NUMA cell 5: the host does not have it"):
        release(host(".."), guest((0, 1)), pinning)


def test_shared_vcpus_and_memory_of_a_release_never_go_below_zero() -> None:
    asked = guest((2, 0), memory_mb=512)
    pinning = Pinning(cells=(CellPinning(host_cell=0),))
    assert release(host("ss"), asked, pinning) == host("ss")


def test_every_fault_of_a_pinning_is_told() -> None:
    pinning = Pinning(
        cells=(
            CellPinning(host_cell=0, cpu_pinning={0: 9}),
            CellPinning(host_cell=5, cpu_pinning={1: 0}),
        )
    )
    with pytest.raises(InvalidInput) as caught:
        take(host(".."), guest((0, 1), (0, 1)), pinning)
    assert [fault.where for fault in caught.value.faults] == [
        "host NUMA cell 0",
        "host NUMA cell 5",
    ]
