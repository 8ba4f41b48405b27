"""With every option off, Nova sends what it sends without cpu-tiers, in a server's whole life.

The page docs/admin/requests.rst says what each feature sends more, and is compared with the
measurement.
"""

import functools
import unittest
from collections import Counter
from importlib.metadata import version
from pathlib import Path

import pytest

from tests import draws
from tests.nova import script
from tests.nova.kinds import Kind
from tests.nova.traffic import Counts

PAGE = Path(__file__).parents[3] / "docs/admin/requests.rst"
FEATURES = {"shares": script.SHARES, "NUMA nodes": script.NODES}


@functools.cache
def measured(name: str) -> dict[str, Counts]:
    """Return what each operation of a life sends."""
    counts: dict[str, Counts] = {}
    life, result = script.Script("runTest"), unittest.TestResult()
    life.kind, life.counts = KINDS[name], counts  # type: ignore[misc]  # of this object only
    life.run(result)
    assert result.wasSuccessful(), [*result.errors, *result.failures]
    return counts


KINDS: dict[str, Kind] = {"stock": script.STOCK, "off": script.OFF, **FEATURES}


def test_off_is_off() -> None:
    stock, off = measured("stock"), measured("off")
    for step in stock:
        assert not off[step].ours, step
        assert off[step] == stock[step], step


@pytest.mark.skipif(
    not version("nova").startswith("34."), reason="the page has the requests of Nova 34"
)
@pytest.mark.parametrize("feature", draws.in_turn(list(FEATURES)))
def test_the_page_lists_the_further_requests_of_a_feature(feature: str) -> None:
    stock, on = measured("stock"), measured(feature)
    lines = [row for step in stock for row in rows(step, on[step].requests, stock[step].requests)]
    table = "\n".join([f".. list-table:: {feature}", *HEADER, *lines])
    assert table in PAGE.read_text(), table


HEADER = ("   :header-rows: 1", "", "   * - Operation", "     - Requests to Placement")


def rows(step: str, on: Counter[str], stock: Counter[str]) -> list[str]:
    """Return the lines of the table about one operation; none if it sends nothing more."""
    assert not stock - on, f"{step}: a request of Nova is missing"
    more = sorted((on - stock).items())
    texts = [f"{count} ``{request}``" for request, count in more]
    return [f"   * - {step}", f"     - {', '.join(texts)}"] if more else []
