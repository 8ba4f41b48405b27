"""The verdicts of ``benchmarks/measure.py``: a figure over its goal is never green in silence."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

PATH = Path(__file__).parents[2] / "benchmarks" / "measure.py"


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The module in a draw of so many rounds, which the environment says."""
    monkeypatch.setenv("CPU_TIERS_BENCH_ROUNDS", request.param)
    spec = importlib.util.spec_from_file_location("measure_of_test", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("measure", "ratio", "goal", "verdict", "status"),
    [
        pytest.param("", 0.2, 0.2, "met", 0, id="bench: the goal itself is met"),
        pytest.param("", 0.2018, 0.2, "MISSED", 1, id="bench: no margin"),
        pytest.param("5", 0.2018, 0.2, "OVER", 0, id="draw: within the margin, and says so"),
        pytest.param("5", 0.26, 0.2, "MISSED", 1, id="draw: 1.25 x 0.2 = 0.25 is the margin"),
        pytest.param("", 9.0, None, "no goal", 0, id="a ratio that is only reported"),
    ],
    indirect=["measure"],
)
def test_verdicts(
    measure: ModuleType,
    capsys: pytest.CaptureFixture[str],
    ratio: float,
    goal: float | None,
    verdict: str,
    status: int,
) -> None:
    ratios = [
        measure.Ratio(what="query", ratio=ratio, goal=goal, detail="1 of 5 us"),
        measure.Ratio(what="other", ratio=0.1, goal=0.2, detail=""),
    ]
    assert measure.report("Title", ratios) == status
    title, _, line, other, *rest = capsys.readouterr().out.splitlines()
    assert title == "Title"
    assert verdict in line
    assert "met" in other
    assert ("1 over the goal" in "\n".join(rest)) == (verdict == "OVER")
