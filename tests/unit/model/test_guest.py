from dataclasses import FrozenInstanceError

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, CellPlace, GuestCell, GuestTopology, Pinning

CELL = GuestCell(id=0, cpuset=CpuSet({0}), pcpuset=CpuSet({1}), memory_mb=512)


def test_a_guest_without_policies_pins_and_reserves_nothing() -> None:
    topology = GuestTopology(cells=(CELL,))
    assert (topology.cpu_policy, topology.page_size, topology.realtime) == (None, None, CpuSet())
    pinning = CellPinning(host_cell=3)
    assert (pinning.cpu_pinning, pinning.cpuset_reserved, pinning.page_size_kb) == (
        {},
        CpuSet(),
        None,
    )


def test_a_guest_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        CELL.memory_mb = 1  # type: ignore[misc]  # that is the test
    with pytest.raises(FrozenInstanceError):
        Pinning(cells=()).cells = (CellPinning(host_cell=0),)  # type: ignore[misc]  # as above


def test_two_pinnings_do_not_share_a_mapping_of_cpus() -> None:
    one, other = CellPinning(host_cell=0), CellPinning(host_cell=0)
    assert one == other
    assert one.cpu_pinning is not other.cpu_pinning


def test_a_place_of_unknown_pages_is_not_a_place_of_small_pages() -> None:
    assert CellPlace(0) != CellPlace(0, 4)
    assert sorted({CellPlace(1, 4), CellPlace(0, 2048), CellPlace(0, 4)})[0] == CellPlace(0, 4)
