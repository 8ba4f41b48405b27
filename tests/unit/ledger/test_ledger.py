"""What the ledger runs, repeats and reports, with workers that only pretend to run tests."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from time import monotonic

import pytest

from tests.ledger.ledger import Ledger
from tests.ledger.modes import MODES, STOCK, Mode
from tests.ledger.report import document, table
from tests.ledger.results import Outcome, Results
from tests.ledger.workers import Run, WorkerDied

SUITES = {"nova.tests.a": "scheduler", "nova.tests.b": "scheduler"}


@dataclass(kw_only=True)
class Pretended:
    """Workers in which each module has one test, ``t``, which passes unless it is told to fail.

    :param failing: the modes in which the test fails, in turn for the first and second run.
    """

    failing: Sequence[Collection[str]] = ((), ())
    wrapped: int = 3
    killed: bool = False
    dies_after: float = inf
    asked: list[tuple[str, str, int]] = field(default_factory=list)
    stopped: bool = False

    def run(self, mode: Mode, module: str, tests: Collection[str], timeout: float) -> Run:
        if len(self.asked) >= self.dies_after:
            raise WorkerDied("gone")
        self.asked.append((mode.name, module, len(tests)))
        kind = "failed" if mode.name in self.failing[bool(tests)] else "passed"
        return Run(
            outcomes={f"{module}.t": Outcome(kind, "Error: x" * (kind == "failed"))},
            wrapped={"nova.utils": self.wrapped} if mode.has_cpu_tiers else {},
            killed=self.killed,
            seconds=1,
            cpu_seconds=1,
        )

    def stop(self) -> None:
        self.stopped = True


def ledger(path: Path, workers: Pretended, code: str = "1") -> Ledger:
    modes = [MODES[STOCK], MODES["shares"]]
    return Ledger(
        nova="34.0.0",
        commit="b8e0dbb",
        modules=SUITES,
        modes=modes,
        codes={STOCK: "", "shares": code},
        expectations=(),
        results=Results(path / "results.jsonl"),
        workers=workers,
        processes=2,
        timeout=60,
    )


def test_a_run_goes_on_where_another_was_stopped(tmp_path: Path) -> None:
    stopped = Pretended(dies_after=3)
    with pytest.raises(WorkerDied):
        ledger(tmp_path, stopped).fill(inf)
    assert stopped.stopped
    resumed = Pretended()
    ledger(tmp_path, resumed).fill(inf)
    everything = {(mode, module, 0) for mode in (STOCK, "shares") for module in SUITES}
    assert len(stopped.asked + resumed.asked) == 4
    assert {*stopped.asked, *resumed.asked} == everything


def test_new_code_of_ours_leaves_the_results_of_stock(tmp_path: Path) -> None:
    ledger(tmp_path, Pretended()).fill(inf)
    changed = Pretended()
    ledger(tmp_path, changed, code="2").fill(inf)
    assert sorted(changed.asked) == [("shares", module, 0) for module in SUITES]


def test_a_difference_counts_at_the_second_occurrence(tmp_path: Path) -> None:
    workers = Pretended(failing=(["shares"], ["shares"]))
    found = ledger(tmp_path, workers)
    found.fill(inf)
    assert sorted(workers.asked)[1::2] == [(m, n, 1) for m in ("shares", STOCK) for n in SUITES]
    assert len(found.report().unexplained) == 2
    again = Pretended()
    ledger(tmp_path, again).fill(inf)
    assert again.asked == []


def test_a_test_that_fails_once_is_no_difference(tmp_path: Path) -> None:
    found = ledger(tmp_path, Pretended(failing=(["shares"], ())))
    found.fill(inf)
    assert not found.report().is_red


def test_a_module_that_the_end_of_the_slice_killed_has_no_result(tmp_path: Path) -> None:
    found = ledger(tmp_path, Pretended(killed=True))
    found.fill(monotonic() + 30)  # less than the 60 s of a module
    assert len(found.missing()) == 4
    assert found.report().not_run == {("scheduler", STOCK): 2, ("scheduler", "shares"): 2}


def test_a_module_that_hangs_has_a_result(tmp_path: Path) -> None:
    found = ledger(tmp_path, Pretended(killed=True))
    found.fill(inf)
    assert found.missing() == []


def test_a_run_without_tests_is_red(tmp_path: Path) -> None:
    report = ledger(tmp_path, Pretended()).report()
    assert report.faults == ["stock: no test ran", "shares: no test ran"]
    assert report.is_red


def test_a_mode_that_runs_none_of_the_modules_is_no_fault(tmp_path: Path) -> None:
    found = ledger(tmp_path, Pretended())
    for_libvirt = replace(
        found, modes=[*found.modes, MODES["numa"]], codes={**found.codes, "numa": ""}
    )
    for_libvirt.fill(inf)
    assert for_libvirt.report().faults == []
    libvirt = {"nova.tests.functional.libvirt.test_a": "functional libvirt"}
    assert [unit.mode.name for unit in replace(for_libvirt, modules=libvirt).missing()] == [
        STOCK,
        "shares",
        "numa",
    ]


def test_a_run_without_our_functions_is_red(tmp_path: Path) -> None:
    found = ledger(tmp_path, Pretended(wrapped=0))
    found.fill(inf)
    assert found.report().faults == [
        f"shares: cpu-tiers wrapped no function of Nova in {module}" for module in SUITES
    ]


def test_the_table_fits_a_terminal_and_the_document_agrees(tmp_path: Path) -> None:
    found = ledger(tmp_path, Pretended(failing=(["shares"], ["shares"])))
    found.fill(inf)
    report = found.report()
    lines = table(report).splitlines()
    assert max(map(len, lines)) <= 80
    row = next(line for line in lines if line.startswith("scheduler           shares"))
    assert row.split() == ["scheduler", "shares", "2", "0", "0", "0", "2"]
    written = document(report)
    assert written["red"]
    assert written["wrapped"] == {STOCK: 0, "shares": 3}
    assert [each["line"] for each in written["unexplained"]] == ["Error: x"] * 2
