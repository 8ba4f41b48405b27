"""How a day of a cloud counts, without a cloud."""

from collections import Counter
from typing import cast

import pytest

from tests.cloud.day_trouble import SERVICES, lack, schedule
from tests.cloud.flatness import Life, Sample, Usages
from tests.cloud.rest import Cloud


@pytest.mark.parametrize(
    ("cpus", "missing"),
    [
        pytest.param(0.0, 1.0, id="a tenth of a CPU is due for ten seconds"),
        pytest.param(0.05, 0.5, id="half of it"),
        pytest.param(0.095, 0.0, id="less than a tenth of it is missing"),
        pytest.param(1.0, 0.0, id="more than is due"),
    ],
)
def test_what_a_guest_lacks(cpus: float, missing: float) -> None:
    samples = [(step / 5, cpus * step / 5) for step in range(51)]
    assert lack(samples, 0.1) == pytest.approx(missing)


def test_a_surplus_makes_up_for_nothing() -> None:
    """In the first of two seconds a guest has nothing, in the other the whole CPU."""
    samples = [(step / 5, max(0.0, step / 5 - 1)) for step in range(11)]
    assert lack(samples, 0.1) == pytest.approx(0.1)


def test_the_longest_life_counts() -> None:
    usages = Usages(cast(Cloud, None))
    before = [Sample(1, 900.0, 900)] * 5
    life = [Sample(2, memory, 10) for memory in (90, 95, 100, 100, 101, 102, 110, 130)]
    usages.samples = {"placement": [*before, *life], "young": before}
    assert list(usages.lives()) == [Life("placement", 8, (100.0, 120.0), (10.0, 10.0))]


@pytest.mark.parametrize(
    ("memory", "descriptors", "is_flat"),
    [
        pytest.param((100.0, 115.0), (10.0, 18.0), True, id="15 MB and 8 descriptors"),
        pytest.param((100.0, 115.1), (10.0, 10.0), False, id="more than 15 MB"),
        pytest.param((300.0, 329.0), (10.0, 10.0), True, id="less than a tenth"),
        pytest.param((300.0, 200.0), (10.0, 19.0), False, id="9 descriptors"),
    ],
)
def test_flat(
    memory: tuple[float, float], descriptors: tuple[float, float], is_flat: bool
) -> None:
    assert Life("a", 8, memory, descriptors).is_flat == is_flat


@pytest.mark.parametrize(
    ("minutes", "restarts", "losses", "plants"), [(60, 15, 2, 8), (4, 7, 1, 2)]
)
def test_what_happens_in_a_day(minutes: int, restarts: int, losses: int, plants: int) -> None:
    events = schedule(minutes)
    counts = Counter(kind if isinstance(kind, str) else "restart" for _, kind in events)
    assert counts["restart"] == restarts
    assert {kind for _, kind in events if not isinstance(kind, str)} == set(SERVICES)
    assert counts["rabbit"] == losses
    assert sum(counts.values()) == restarts + losses + plants
    assert all(0 < at < minutes * 60 for at, _ in events)
