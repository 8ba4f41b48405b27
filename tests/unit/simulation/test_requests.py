"""Requests from a table, with every fault, and drawn requests."""

import random

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.simulation.requests import Arrival, draw_arrivals, read_arrivals


def test_a_table_is_sorted_by_time() -> None:
    lines = ["flavor,time,lifetime", "gold,5,", "silver,1.5,10", "gold,1.5,0"]
    assert read_arrivals(lines, ["gold", "silver"], where="r") == [
        Arrival(time=1.5, flavor="silver", lifetime=10.0),
        Arrival(time=1.5, flavor="gold", lifetime=0.0),
        Arrival(time=5.0, flavor="gold"),
    ]


def test_servers_stay_for_ever_without_a_column() -> None:
    (arrival,) = read_arrivals(["time,flavor", "0,gold"], ["gold"], where="r")
    assert arrival.lifetime is None


@pytest.mark.parametrize(
    ("lines", "faults"),
    [
        pytest.param([], ["r, line 1: the columns are missing"], id="an empty file"),
        pytest.param(["time,name"], ["r, line 1: the columns time, name"], id="columns"),
        pytest.param(["time,flavor"], ["r: no requests"], id="no line"),
        pytest.param(
            ["time,flavor,lifetime", "x,lead,-1", "nan,gold,", "1,gold,2,3"],
            [
                "r, line 2, time: got 'x'",
                "r, line 2, lifetime: got '-1'",
                "r, line 2, flavor: got 'lead'; name a flavor of the snapshot",
                "r, line 3, time: got 'nan'",
                "r, line 4: more fields than columns",
            ],
            id="every fault of every line",
        ),
    ],
)
def test_faults(lines: list[str], faults: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        read_arrivals(lines, ["gold"], where="r")
    given = str(error.value).splitlines()
    assert len(given) == len(faults)
    for line, fault in zip(given, faults, strict=True):
        assert line.startswith(fault)


def test_any_flavor_if_the_names_are_not_known() -> None:
    (arrival,) = read_arrivals(["time,flavor", "0,lead"], None, where="r")
    assert arrival.flavor == "lead"


def test_a_draw_has_the_shares_of_the_mix() -> None:
    arrivals = draw_arrivals(4000, {"gold": 1, "silver": 3}, 10.0, random.Random(1))
    assert [arrival.time for arrival in arrivals[:3]] == [0.0, 1.0, 2.0]
    silver = sum(arrival.flavor == "silver" for arrival in arrivals)
    # 3,000 of 4,000, with a standard deviation of 27; the mean stay is 10, its deviation 0.16
    assert 2900 < silver < 3100
    assert 9.3 < sum(arrival.lifetime or 0 for arrival in arrivals) / 4000 < 10.7
    assert draw_arrivals(2, {"gold": 1}, None, random.Random(1))[1].lifetime is None
