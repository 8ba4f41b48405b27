"""The page of a cloud in a browser: all hosts, a click on a host, and paper."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page as BrowserPage

from cpu_tiers.tools.page.cloud import cloud_page
from tests.functional.page.clouds import HOSTILE, cloud_of, report_of
from tests.page.conftest import Open

NAMES = ["compute-1", "compute-2", HOSTILE]


def html_of(names: list[str]) -> str:
    """Return the page of a cloud; the second host is over its capacity."""
    cloud = cloud_of(names)
    report, server_names = report_of(names[0]), {"server-2": f"web {HOSTILE}"}
    return cloud_page(cloud, ["gold"], [report], "A test.", server_names).html()


def texts(page: BrowserPage, part: str) -> list[str]:
    """Return the texts in the charts of a section."""
    return list(page.locator(f"#{part} .chart svg text").all_text_contents())


def test_from_all_hosts_to_a_host_and_back(open_html: Open, tmp_path: Path) -> None:
    page = open_html(html_of(NAMES))
    # The cells have the names of few hosts, and the least part that is left: 1 - 2/4, 1 - 5/4, 1.
    left = texts(page, "left")
    assert {"compute-1", "compute-2", "50", "!-25", "100"} <= {*left}
    assert any(text.startswith("</script><img src=x") for text in left)
    labels = page.locator("#left .chart .mark-rect path").evaluate_all(
        "cells => cells.map(cell => cell.getAttribute('aria-label'))"
    )
    assert (
        "compute-2: -25 % of least of all classes left, a provider is over its capacity" in labels
    )
    assert page.locator("#over td").all_inner_texts() == [
        "compute-2",
        "VCPU",
        "4",
        "5",
    ]
    assert not page.locator("#host").is_visible()

    # Its number lies over the cell, and leads to the host as well.
    page.locator("#left .chart .mark-rect path[aria-label^='compute-2:']").click(force=True)
    page.wait_for_selector("#host:not([hidden])")
    page.wait_for_selector("html[data-charts=drawn]")
    assert page.locator("#chosen").inner_text() == "compute-2"
    assert not page.locator("#left").is_visible()
    assert "! 5 of 4" in texts(page, "host")
    cells = page.locator("#host [data-table=guests] tbody td").all_inner_texts()
    assert cells[:3] == ["gold", f"web {HOSTILE}", "server-2"]
    assert "No audit of this host" in page.locator("#host").inner_text()

    page.get_by_role("link", name="All hosts").click()
    page.wait_for_selector("#left:not([hidden])")
    page.locator("#hosts").get_by_role("link", name="compute-1", exact=True).click()
    page.wait_for_selector("#host:not([hidden])")
    page.wait_for_selector("html[data-charts=drawn]")
    assert "<b>found</b>" in page.locator("#host [data-table=findings]").inner_text()
    assert page.pdf(path=tmp_path / "host.pdf")


def test_another_resource_class(open_html: Open) -> None:
    page = open_html(html_of(NAMES))
    page.locator("#left select").select_option("MEMORY_MB")
    # 1 - 30/100 on the first host; nothing is used on the others.
    assert {"70", "100"} <= {*texts(page, "left")}


@pytest.mark.parametrize("count", [13, 1000])
def test_many_hosts(open_html: Open, count: int) -> None:
    page = open_html(html_of([f"compute-{number:04}" for number in range(count)]))
    assert page.locator("#left .chart .mark-rect path[role]").count() == count
    # Each row of 32 hosts has the name of its first host.
    names = [text for text in texts(page, "left") if re.fullmatch(r"compute-\d+", text)]
    assert names == [f"compute-{number:04}" for number in range(0, count, 32)]
    page.emulate_media(media="print")
    assert page.pdf()


def test_an_empty_cloud(open_html: Open) -> None:
    page = open_html(cloud_page(cloud_of([]), [], [], "A test.").html())
    assert "Hosts with CPUs: 0." in page.locator("body").inner_text()
    assert page.locator("svg").count() == 0


def test_names_of_200_letters_do_not_widen_the_page(open_html: Open) -> None:
    page = open_html(html_of(["x" * 200, "y" * 199]))
    for choice in ("", "host-2"):
        page.evaluate("choice => { location.hash = choice }", choice)
        page.wait_for_selector("html[data-charts=drawn]")
        if choice:
            page.wait_for_selector("#host:not([hidden])")
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
