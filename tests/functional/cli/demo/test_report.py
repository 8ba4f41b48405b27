"""The output of ``cpu-tiers demo`` on a terminal."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.demo_picture import COMMAND, PICTURE, chosen, drawn, text_of

ROOT = Path(__file__).parents[4]


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


def test_no_line_ends_with_blanks(run: Callable[..., Any]) -> None:
    lines = run("demo").stdout.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []


def test_the_picture_in_the_readme_has_the_lines_of_the_demo(run: Callable[..., Any]) -> None:
    lines = run("demo").stdout.splitlines()
    shown = text_of(PICTURE.read_text())
    assert shown == [COMMAND, *chosen(lines, lines)]
    assert len(shown) > 15
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text()


def test_a_command_draws_the_picture() -> None:
    assert text_of(drawn()) == text_of(PICTURE.read_text())
