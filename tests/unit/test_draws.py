"""Classes with the same tests take turns."""

import pytest

from tests import draws


def test_each_class_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DAYS", 5)
    days: list[type] = []
    for seed in (20261122, 20261123, 20261124):
        monkeypatch.setattr(draws, "SEED", seed)
        days += draws.in_turn([int, str, float])
    assert sorted(days, key=str) == [float, int, str]
    assert draws.in_turn([int]) == [int]


def test_one_day_has_all_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "DAYS", 1)
    assert draws.in_turn([int, str]) == [int, str]
