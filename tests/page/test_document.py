"""A page with a chart, in a browser: drawn as SVG with texts, whatever the names are."""

from typing import Any

import altair
import pytest

from cpu_tiers.tools.page.document import Page, PageChart, PageSection
from tests.page.conftest import Open

HOSTILE = "</script><img src=x onerror=alert(1)>"


class BrokenChart(altair.Chart):
    """A chart with a mark that Vega-Lite does not have."""

    def to_dict(self, *args: Any, **options: Any) -> dict[str, Any]:
        return {**super().to_dict(*args, **options), "mark": {"type": "no such mark"}}


def page_of(*names: str, of_kind: type[altair.Chart] = altair.Chart) -> str:
    """Return the HTML of a page with a bar for each name."""
    chart = (
        of_kind(altair.NamedData(name="hosts"), width=300)
        .mark_bar()
        .encode(x="left:Q", y=altair.Y("host:N").axis(labelLimit=600), tooltip="host:N")
    )
    part = PageChart(title="Left", summary="What is left of each host.", chart=chart)
    return Page(
        title="A cloud",
        sections=[PageSection(key="hosts", title="Hosts", parts=[part])],
        datasets={"hosts": [{"host": name, "left": 0.5} for name in names]},
    ).html()


@pytest.mark.parametrize("name", ["compute-1", HOSTILE, "&lt;b&gt;", "{{ 7*7 }}", "datum['a']"])
def test_a_name_is_a_text_of_the_chart(open_html: Open, name: str) -> None:
    page = open_html(page_of(name, "compute-2"))
    labels = page.locator(".chart svg .role-axis-label text")
    assert name in labels.all_text_contents()
    assert page.locator("img").count() == 0
    page.hover(".chart svg .mark-rect path")
    assert name in page.locator("#vg-tooltip-element").inner_text()


def test_a_chart_has_an_accessible_summary(open_html: Open) -> None:
    page = open_html(page_of("compute-1"))
    place = page.locator(".chart[role=graphics-document]")
    assert place.get_attribute("aria-label") == "What is left of each host."


def test_a_chart_that_cannot_be_drawn_has_a_message(open_html: Open) -> None:
    page = open_html(page_of("compute-1", of_kind=BrokenChart))
    assert "This chart cannot be drawn" in page.locator(".chart").inner_text()
