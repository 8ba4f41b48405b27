"""The charts of the page of a cloud, as Vega-Lite: names are never a part of an expression."""

import json
from itertools import pairwise
from typing import Any

import pytest

from cpu_tiers.tools.page import charts
from tests.functional.page.clouds import HOSTILE


def fields(chart: Any, key: str) -> list[str]:
    """Return the values of a key, wherever it is in a chart."""
    if isinstance(chart, list):
        return [value for item in chart for value in fields(item, key)]
    if not isinstance(chart, dict):
        return []
    own = [chart[key]] if isinstance(chart.get(key), str) else []
    return own + [value for item in chart.values() for value in fields(item, key)]


CHARTS = [
    charts.heat_map([HOSTILE], 3),
    charts.heat_map([HOSTILE], 100),
    charts.sold_by_tier([HOSTILE], [HOSTILE, "gold"]),
    charts.consumers_by_tier([HOSTILE]),
    charts.amounts_of_host(),
    charts.guests_of_host([HOSTILE]),
    charts.findings_by_kind(),
    charts.short_by_tier([HOSTILE]),
]


@pytest.mark.parametrize("number", range(len(CHARTS)))
def test_a_name_is_only_a_value(number: int) -> None:
    chart = CHARTS[number].to_dict()
    for key in ("field", "filter", "calculate", "test", "expr", "href", "url", "aggregate"):
        assert HOSTILE not in "".join(fields(chart, key))
    assert "url" not in json.dumps(chart).replace("$schema", "")


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_tiers_have_distinct_shades_from_light_to_dark(count: int) -> None:
    (colors,) = fields_of_range(charts.consumers_by_tier([f"t{n}" for n in range(count)]))
    assert len(colors) == count
    # The lightness by the green part, of which cividis always has less towards its dark end.
    greens = [int(color[3:5], 16) for color in colors]
    assert all(light > dark for light, dark in pairwise(greens))


def fields_of_range(chart: Any) -> list[list[str]]:
    """Return the colors of the scale of a chart."""

    def ranges(value: Any) -> list[list[str]]:
        if isinstance(value, list):
            return [found for item in value for found in ranges(item)]
        if not isinstance(value, dict):
            return []
        own = [value["range"]] if "range" in value else []
        return own + [found for item in value.values() for found in ranges(item)]

    return ranges(chart.to_dict())
