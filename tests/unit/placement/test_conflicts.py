from collections.abc import Callable

import pytest

from cpu_tiers.placement.errors import (
    DataChanged,
    DuplicateName,
    GenerationConflict,
    PlacementError,
    PlacementRefused,
    PlacementUnavailable,
)
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.conflicts import repeated, with_fresh_reads, write_again


class Operation:
    """Meets somebody else so many times before it gets through."""

    def __init__(self, times: int, conflict: type[PlacementError]) -> None:
        self.times, self.conflict, self.calls = times, conflict, 0
        self.values: dict[str, object] = {}
        self.pauses: list[float] = []

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.times:
            error = self.conflict("somebody else was faster")
            vars(error).update(self.values)
            raise error
        return "done"

    def policy(self, attempts: int = 20) -> RetryPolicy:
        return RetryPolicy(sleep=self.pauses.append, conflict_attempts=attempts)


@pytest.mark.parametrize("conflict", [GenerationConflict, DuplicateName, DataChanged])
def test_an_operation_is_tried_again_after_pauses_at_random(
    conflict: type[PlacementRefused],
) -> None:
    operation = Operation(19, conflict)
    assert with_fresh_reads(operation.policy(), operation) == "done"
    assert operation.calls == 20
    # The longest pauses: 0.05, 0.1, 0.2, 0.4, 0.8 and then 1 second. 14 pauses at random between
    # 0 and a second are less than a second together once in 14! = 87 billion times.
    longest = [0.05, 0.1, 0.2, 0.4, 0.8, *[1.0] * 14]
    assert all(0 <= pause <= most for pause, most in zip(operation.pauses, longest, strict=True))
    assert sum(operation.pauses) > 1


def test_the_attempts_are_limited() -> None:
    operation = Operation(9, GenerationConflict)
    with pytest.raises(GenerationConflict):
        with_fresh_reads(operation.policy(attempts=4), operation)
    assert operation.calls == 4


@pytest.mark.parametrize("repeat", [with_fresh_reads, repeated])
def test_a_write_without_an_answer_is_repeated_when_the_service_asks_for_it(
    repeat: Callable[[RetryPolicy, Callable[[], str]], str],
) -> None:
    operation = Operation(2, PlacementUnavailable)
    operation.values = {"needs_read": True, "retry_after": "7"}
    assert repeat(operation.policy(), operation) == "done"
    assert operation.pauses == [7, 7]


@pytest.mark.parametrize("repeat", [with_fresh_reads, repeated])
@pytest.mark.parametrize("refusal", [PlacementRefused, PlacementUnavailable])
def test_a_refusal_is_not_repeated(
    refusal: type[PlacementError],
    repeat: Callable[[RetryPolicy, Callable[[], str]], str],
) -> None:
    operation = Operation(1, refusal)
    with pytest.raises(refusal):
        repeat(operation.policy(), operation)
    assert operation.calls == 1


def test_a_write_is_not_repeated_with_data_that_have_changed() -> None:
    operation = Operation(1, DataChanged)
    with pytest.raises(DataChanged):
        repeated(operation.policy(), operation)
    assert operation.calls == 1


def test_only_the_generation_is_read_again_right_before_the_next_write() -> None:
    """Somebody writes twice: after our read of 5, and after our read of 7."""
    happened: list[str] = []
    present = iter([7, 9])

    def write(generation: int) -> str:
        happened.append(f"write {generation}")
        if generation < 9:
            raise GenerationConflict("somebody else was faster")
        return "done"

    def read() -> int:
        happened.append("read")
        return next(present)

    policy = RetryPolicy(sleep=lambda _: happened.append("pause"))
    assert write_again(policy, write, 5, read) == "done"
    # The first read follows the first conflict at once.
    assert happened == ["write 5", "read", "write 7", "pause", "read", "write 9"]
