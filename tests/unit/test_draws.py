"""Classes with the same tests take turns, and a failed cloud can be repeated."""

import pytest

from tests import draws


def test_each_class_has_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DAYS", 5)
    days: list[type] = []
    for seed in (20261122, 20261123, 20261124):
        monkeypatch.setattr(draws, "SEED", seed)
        days += draws.in_turn([int, str, float])
    assert sorted(days, key=str) == [float, int, str]
    assert draws.in_turn([int]) == [int]


def test_three_days_have_all_thirds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DAYS", 5)
    first_days = set()
    for first in range(20260902, 20260929, 3):
        days: list[int] = []
        for seed in range(first, first + 3):
            monkeypatch.setattr(draws, "SEED", seed)
            days += draws.third(range(7))
        assert sorted(days) == list(range(7))
        first_days.add(days[0])
    assert first_days == {0, 1, 2}


def test_a_single_day_has_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DAYS", 1)
    assert draws.in_turn([int, str]) == [int, str]
    assert draws.third([int, str]) == [int, str]


@pytest.mark.parametrize(
    ("given", "numbers"),
    [
        pytest.param(None, [0, 1], id="a fifth of 8, rounded up"),
        pytest.param("3-5", [3, 4, 5], id="from the first to the last"),
        pytest.param("7", [7], id="one cloud"),
    ],
)
def test_the_clouds_that_are_drawn(
    monkeypatch: pytest.MonkeyPatch, given: str | None, numbers: list[int]
) -> None:
    monkeypatch.setattr(draws, "DAYS", 5)
    monkeypatch.delenv("CPU_TIERS_CLOUDS", raising=False)
    if given:
        monkeypatch.setenv("CPU_TIERS_CLOUDS", given)
    assert list(draws.clouds(8)) == numbers


def test_a_failure_has_the_command_to_repeat_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "SEED", 20261122)
    with pytest.raises(ValueError, match="missed") as failure, draws.repeatable(17) as seed:
        raise ValueError(f"missed in {seed}")
    assert str(failure.value) == "missed in 20261122 17"
    assert failure.value.__notes__ == ["repeat it: CPU_TIERS_SEED=20261122 CPU_TIERS_CLOUDS=17"]
