"""A fault of Placement costs a server what it costs with Nova alone.

Each request that only cpu-tiers sends fails in each way, in each operation. After that, the
operation is done, or was refused: the server has no task, is not in ERROR (except after a boot,
which Nova refuses so), and holds all that it needs on its host. A run draws a part of the cases
(``faulty_life.draw``); ``CPU_TIERS_DAYS=1`` draws all of them.
"""

import unittest
from typing import Any

import pytest

from tests.nova import faulty_life, script

DISKLESS = {"kind": script.NODES, "disk_gb": 0}
OWN_HOST = {"hosts": ("one",), "wanted": {"boot", "resize", "confirm", "revert", "delete"}}


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"kind": script.SHARES}, id="shares"),
        pytest.param(DISKLESS, id="a server with allocations of only NUMA nodes"),
        pytest.param({**DISKLESS, **OWN_HOST}, id="the same server is resized on its own host"),
    ],
)
def test_a_fault_costs_what_it_costs_nova(attributes: dict[str, Any]) -> None:
    life, result = faulty_life.FaultyLife("runTest"), unittest.TestResult()
    figures: list[str] = []
    breaches: list[str] = []
    lists = {"figures": figures, "breaches": breaches}
    for name, value in {**attributes, **lists}.items():
        setattr(life, name, value)
    life.run(result)
    print(*figures, *breaches, sep="\n")  # noqa: T201  # how many cases of which kind there were
    assert result.wasSuccessful(), [text for _, text in [*result.errors, *result.failures]]
    assert not breaches
