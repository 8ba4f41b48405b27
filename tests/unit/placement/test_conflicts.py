import pytest

from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.errors import DuplicateName, GenerationConflict, PlacementRefused


class Operation:
    """Meets somebody else so many times before it gets through."""

    def __init__(self, times: int, conflict: type[PlacementRefused]) -> None:
        self.times, self.conflict, self.calls = times, conflict, 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            raise self.conflict("somebody else was faster")
        return "done"


@pytest.mark.parametrize("conflict", [GenerationConflict, DuplicateName])
def test_a_conflict_is_tried_again(conflict: type[PlacementRefused]) -> None:
    operation = Operation(3, conflict)
    assert with_fresh_reads(operation) == "done"
    assert operation.calls == 4


def test_four_times_and_no_more() -> None:
    operation = Operation(4, GenerationConflict)
    with pytest.raises(GenerationConflict):
        with_fresh_reads(operation)
    assert operation.calls == 4


def test_other_refusals_are_not() -> None:
    operation = Operation(1, PlacementRefused)
    with pytest.raises(PlacementRefused):
        with_fresh_reads(operation)
    assert operation.calls == 1
