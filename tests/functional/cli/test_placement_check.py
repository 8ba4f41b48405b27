"""``placement check`` against a real Placement over HTTP."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]
SMALL = ("--claimers", "2", "--rounds", "1", "-f", "json")


@pytest.fixture
def check(run: Command, placement_conf: Path) -> Command:
    """Run ``placement check``."""

    def check(*arguments: str, status: int = 0) -> Any:
        return run(
            "--config-file", placement_conf, "placement", "check", *arguments, status=status
        )

    return check


def test_exit_status_0(check: Command) -> None:
    result = check(*SMALL)
    assert json.loads(result.stdout) == {
        "rounds": 1,
        "oversold_rounds": 0,
        "capacity": 1,
        "most_granted": 1,
        "left_behind": 0,
    }
    assert result.stderr == (
        "Placement allocated no more than the capacity of 1 units in 1 rounds.\n"
    )


def test_exit_status_3_and_the_remedy(check: Command, faults: list[tuple[str, str]]) -> None:
    faults.append(("GET .*/usages", "9 NUMA_THREAD"))
    result = check(*SMALL, status=3)
    assert json.loads(result.stdout)["most_granted"] == 9
    assert "in 1 of 1 rounds, at most 9 of 1 units" in result.stderr
    assert "[placement] allocation_conflict_retry_count = 1 in placement.conf" in result.stderr
    assert "[filter_scheduler] give_back_oversold_claims = true" in result.stderr


def test_exit_status_1(check: Command, faults: list[tuple[str, str]]) -> None:
    faults.append(("POST /resource_providers", "JSON 403"))
    result = check(*SMALL, status=1)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert "HTTP 403" in result.stderr


def test_exit_status_1_for_a_provider_that_is_left(
    check: Command, faults: list[tuple[str, str]]
) -> None:
    faults.append(("DELETE /resource_providers", "JSON 403"))
    result = check(*SMALL, status=1)
    assert json.loads(result.stdout)["left_behind"] == 1
    assert "Provider cpu-tiers-placement-check-" in result.stderr


@pytest.mark.parametrize("arguments", [("--claimers", "1"), ("--rounds", "0")])
def test_exit_status_2(check: Command, arguments: tuple[str, str]) -> None:
    assert "give a whole number from " in check(*arguments, status=2).stderr
