"""The output of ``cpu-tiers demo`` on a terminal."""

from collections.abc import Callable
from typing import Any


def test_output(run: Callable[..., Any]) -> None:
    lines = run("demo").stdout.splitlines()
    assert [line[0] for line in lines if line[1:3] == ". "] == ["1", "2", "3", "4", "5"]
    assert max(map(len, lines)) <= 80
    assert sum("Placement says no" in line for line in lines) == 3
    # cpu_allocation_ratio 2 x 50 shares: a Gold vCPU is worth one CPU on a full host
    golds = [line.split() for line in lines if line.startswith(" gold-") and "█" in line]
    assert golds
    assert {(weight, cpus) for _, weight, _, cpus, _ in golds} == {("100", "1.00")}
    assert "    <shares>100</shares>" in "\n".join(lines)
