"""The arguments of ``allocation heal``, and the messages about a host."""

import logging
from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest

from cpu_tiers.accounting.holdings import ConsumerId
from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.accounting.healing import Untouched
from cpu_tiers.tools.frame.app import CpuTiersApp
from cpu_tiers.tools.writers.allocation_heal import AllocationHeal


def command() -> AllocationHeal:
    return AllocationHeal(CpuTiersApp(), None)


def heal_plan(*limits: dict[str, str], shares: bool = True) -> Any:
    additions = [SimpleNamespace(limits=limit, faults=list(limit.values())) for limit in limits]
    return SimpleNamespace(
        host="one",
        shares={"one": {}} if shares else {},
        has_nodes=False,
        additions=additions,
        fits=not any(limits),
        untouched=(),
    )


NO_PORTS = SimpleNamespace(asking=0, shortfalls=[])


def log(plan: Any, *, apply: bool, host: str = "", show_all: bool = False) -> bool:
    """Log a plan; tell whether the exit status is going to be 1."""
    heal, hosts = command(), [host] if host else []
    given = Namespace(apply=apply, host=hosts, server=[], all=show_all)
    heal._log(plan, NO_PORTS, given)  # type: ignore[arg-type]
    return bool(heal.status)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="neither --plan nor --apply"),
        pytest.param(["--plan", "--apply"], id="both"),
        pytest.param(["--plan", "--host", "one", "--server", "x"], id="hosts and servers"),
    ],
)
def test_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as error:
        command().get_parser("heal").parse_args(arguments)
    assert error.value.code == 2


def test_without_a_host_or_server_all_hosts_are_healed() -> None:
    parsed = command().get_parser("heal").parse_args(["--plan"])
    assert (parsed.host, parsed.server, parsed.apply) == ([], [], False)


def test_healed_consumers_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert not log(heal_plan({}, {}), apply=True)
    assert caplog.messages == ["one: 2 consumers healed"]


def test_a_plan_heals_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert not log(heal_plan({}, {}), apply=False)
    assert caplog.messages == []


@pytest.mark.parametrize("is_wrong", [True, False])
def test_what_is_left_alone_is_named_once(
    is_wrong: bool, caplog: pytest.LogCaptureFixture
) -> None:
    plan = heal_plan()
    left = Untouched(consumer=ConsumerId("x"), server="x", text="x is lost", is_wrong=is_wrong)
    plan.untouched = (left, left)
    assert log(plan, apply=True) is is_wrong
    named = [record.levelname for record in caplog.records if "x is lost" in record.message]
    assert named == ["ERROR" if is_wrong else "WARNING"]


def test_if_a_consumer_does_not_fit_nothing_is_written(caplog: pytest.LogCaptureFixture) -> None:
    assert log(heal_plan({}, {"one": "web: no room"}), apply=True)
    assert caplog.messages == ["web: no room", "one: nothing is written"]


@pytest.mark.parametrize("show_all", [False, True])
def test_the_first_refusals_of_many(caplog: pytest.LogCaptureFixture, show_all: bool) -> None:
    limits = [{"one": f"web{number}: no room"} for number in range(300)]
    assert log(heal_plan(*limits), apply=False, show_all=show_all)
    *messages, more, nothing = caplog.messages
    assert nothing == "one: nothing is written"
    assert more == ("web299: no room" if show_all else "and 290 more (--all shows them)")
    assert messages == [f"web{number}: no room" for number in range(299 if show_all else 10)]


def test_a_named_host_without_shares_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="host one: it reports no shares"):
        log(heal_plan(shares=False), apply=False, host="one")
    assert not log(heal_plan(shares=False), apply=False)  # one host of many
