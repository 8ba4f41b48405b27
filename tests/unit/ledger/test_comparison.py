"""Which differences between a stock Nova and Nova with cpu-tiers are red."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.ledger import comparison
from tests.ledger.comparison import EXPECTED, Account, Expectation, read_expectations
from tests.ledger.modes import MODES
from tests.ledger.results import Key, Outcome, Result


def result(mode: str, **outcomes: str) -> Result:
    """Return the result of a module ``m`` with tests of the given kinds of outcomes."""
    key = Key(nova="34.0.0", code="", mode=mode, module="m")
    return Result(
        key=key, outcomes={f"m.{name}": Outcome(kind, "why") for name, kind in outcomes.items()}
    )


REPORTING = Expectation(tests=("m.inv*",), modes=("shares",), reason="one class more")


def test_each_test_counts_once() -> None:
    account = Account()
    stock = result("stock", a="passed", b="failed", c="skipped", inventory="passed", d="passed")
    ours = result("shares", a="passed", b="failed", c="skipped", inventory="failed", d="failed")
    comparison.enter(account, stock, ours, [REPORTING])
    assert (account.tests, account.passed, account.as_stock, account.expected) == (5, 1, 2, 1)
    assert [str(each) for each in account.unexplained] == [
        "m.d\n    shares: failed, stock: passed\n    why"
    ]


@pytest.mark.parametrize(
    ("stock", "ours"),
    [
        pytest.param("failed", "passed", id="a test that passes only with cpu-tiers"),
        pytest.param("passed", "skipped", id="a test that is skipped"),
        pytest.param("passed", "killed", id="a test that hangs"),
        pytest.param("passed", "not reached", id="a test after a hang"),
    ],
)
def test_every_outcome_of_another_kind_is_a_difference(stock: str, ours: str) -> None:
    (difference,) = comparison.differences(result("stock", a=stock), result("off", a=ours))
    assert (difference.stock.kind, difference.ours.kind) == (stock, ours)


def test_a_test_missing_on_a_side_is_a_difference() -> None:
    found = comparison.differences(result("stock", a="passed"), result("off", b="passed"))
    assert {each.test: each.ours.kind for each in found} == {"m.a": "not reached", "m.b": "passed"}


@pytest.mark.parametrize(
    ("mode", "line", "number"),
    [
        pytest.param("shares", "wh", 0, id="expected"),
        pytest.param("off", "wh", 1, id="in another mode"),
        pytest.param("shares", "who", 1, id="with another failure"),
    ],
)
def test_an_expectation_is_for_given_modes_and_a_given_failure(
    mode: str, line: str, number: int
) -> None:
    stock, ours = result("stock", inventory="passed"), result(mode, inventory="failed")
    expectation = replace(REPORTING, line=line)
    assert len(comparison.unexplained(stock, ours, [expectation])) == number


@pytest.mark.parametrize(
    ("ours", "number"),
    [
        pytest.param(result("shares", inventory="passed"), 1, id="no test of the pattern differs"),
        pytest.param(result("shares", inventory="failed"), 0, id="a test differs"),
        pytest.param(result("off", inventory="passed"), 0, id="the mode did not run"),
        pytest.param(result("shares", a="passed"), 0, id="no test of the pattern ran"),
    ],
)
def test_an_expected_difference_that_does_not_occur_is_reported(ours: Result, number: int) -> None:
    stock = result("stock", inventory="passed", a="passed")
    assert len(comparison.vanished([(stock, ours)], [REPORTING])) == number


def test_an_entry_without_a_reason_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    path.write_text('[[difference]]\ntests = ["m.*"]\nmodes = ["off"]\nreason = " "\n')
    with pytest.raises(ValueError, match="a reason"):
        read_expectations(path, "34.0.0")


@pytest.mark.parametrize(("nova", "number"), [("33.0.2", 1), ("34.0.0", 0), ("3.3", 0)])
def test_an_entry_may_be_about_some_releases(tmp_path: Path, nova: str, number: int) -> None:
    path = tmp_path / "expected.toml"
    entry = 'tests = ["m.*"]\nmodes = ["off"]\nreason = "r"\nreleases = ["32", "33"]\n'
    path.write_text(f"[[difference]]\n{entry}")
    assert len(read_expectations(path, nova)) == number


def test_our_expectations_name_tests_and_modes_that_exist() -> None:
    expectations = {
        each for nova in ("31", "32", "33", "34") for each in read_expectations(EXPECTED, nova)
    }
    assert {mode for each in expectations for mode in each.modes} <= MODES.keys() - {"stock"}
    assert all(test.startswith("nova.tests.") for each in expectations for test in each.tests)
