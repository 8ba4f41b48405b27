"""The results outlive the run that made them, also a run that was cut off."""

from dataclasses import replace
from pathlib import Path

from tests.ledger.results import Key, Outcome, Result, Results

KEY = Key(nova="34.0.0", code="abc", mode="off", module="m")
RESULT = Result(
    key=KEY,
    outcomes={"m.a": Outcome("failed", "line"), "m.b": Outcome("passed")},
    wrapped={"nova.scheduler.utils": 2},
    seconds=2.5,
    cpu_seconds=1.5,
    commit="b8e0dbb",
)


def test_a_result_read_equals_the_result_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "results.jsonl"
    Results(path).add(RESULT)
    assert Results(path).get(KEY) == RESULT


def test_a_result_of_another_code_or_nova_version_is_not_used(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    results.add(RESULT)
    assert results.get(replace(KEY, code="abd")) is None
    assert results.get(replace(KEY, nova="33.0.2")) is None


def test_a_line_that_was_cut_off_costs_that_line_only(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    Results(path).add(RESULT)
    with path.open("a") as file:
        file.write('\n{"key": {"nova"')
    results = Results(path)
    other = replace(RESULT, key=replace(KEY, module="n"))
    results.add(other)
    read = Results(path)
    assert (read.get(KEY), read.get(other.key)) == (RESULT, other)


def test_a_second_run_of_a_test_replaces_the_outcome(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    again = frozenset({"m.a"})
    results = Results(path)
    results.add(RESULT)
    results.add(replace(RESULT, outcomes={"m.a": Outcome("passed")}, again=again, wrapped={}))
    assert Results(path).get(KEY) == results.get(KEY)
    assert results.get(KEY) == replace(
        RESULT,
        outcomes={"m.a": Outcome("passed"), "m.b": Outcome("passed")},
        again=again,
        seconds=5.0,  # 2.5 + 2.5
        cpu_seconds=3.0,  # 1.5 + 1.5
    )
