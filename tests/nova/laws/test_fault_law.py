"""A fault of Placement or of Nova's database costs a server what it costs with Nova alone.

Each request that only cpu-tiers sends fails in each way, in each operation, and so does each query
of the database. After that, the operation is done, or was refused: the server has no task, is not
in ERROR (except after a boot, which Nova refuses so), and holds all that it needs on its host. The
first start of nova-compute that reports shares or NUMA nodes is carried out as a whole, or reports
as Nova does, or is refused; the next start ends as a start without a fault. A run draws a part of
the cases (``faulty_life.draw``), and has one of ``IN_TURN``; ``CPU_TIERS_DAYS=1`` draws all cases.
"""

import unittest
from typing import Any

import pytest

from tests import draws
from tests.nova import faulty_life, faulty_start, script
from tests.nova.computes import Computes

DISKLESS = {"kind": script.NODES, "disk_gb": 0}
DATABASE = {"kind": script.ALL, "disk_gb": 0, "breaks_database": True}
OWN_HOST = {"hosts": ("one",), "wanted": {"boot", "resize", "confirm", "revert", "delete"}}

IN_TURN = [
    pytest.param(faulty_start.FaultyStart, {}, id="the first reshape"),
    pytest.param(faulty_life.FaultyLife, DATABASE, id="the database, with every option on"),
    pytest.param(
        faulty_life.FaultyLife, {**DATABASE, **OWN_HOST}, id="the database, on the own host"
    ),
    pytest.param(
        faulty_life.FaultyLife,
        {**DISKLESS, **OWN_HOST},
        id="the same server is resized on its own host",
    ),
]


@pytest.mark.parametrize(
    ("kind_of_life", "attributes"),
    [
        pytest.param(faulty_life.FaultyLife, {"kind": script.SHARES}, id="shares"),
        pytest.param(
            faulty_life.FaultyLife, DISKLESS, id="a server with allocations of only NUMA nodes"
        ),
        *draws.in_turn(IN_TURN),
    ],
)
def test_a_fault_ends_as_in_nova_without_cpu_tiers(
    kind_of_life: type[Computes], attributes: dict[str, Any]
) -> None:
    assert not breaches(kind_of_life("runTest"), attributes)


def breaches(life: Computes, attributes: dict[str, Any]) -> list[str]:
    """Have a life of a host or a server, and return the breaches of the law."""
    result = unittest.TestResult()
    figures: list[str] = []
    found: list[str] = []
    lists = {"figures": figures, "breaches": found}
    for name, value in {**attributes, **lists}.items():
        setattr(life, name, value)
    life.run(result)
    print(*figures, *found, sep="\n")  # noqa: T201  # how many cases of which kind there were
    assert result.wasSuccessful(), [text for _, text in [*result.errors, *result.failures]]
    return found
