"""What a start of nova-compute does where the consumers of the host are not known."""

from typing import Any
from unittest import mock

import oslo_messaging
import pytest
from keystoneauth1.exceptions import ConnectFailure

from cpu_tiers.nova.compute import starting_consumers
from cpu_tiers.nova.compute.report_decision import ReportDecision
from cpu_tiers.nova.compute.start_refusal import MoveRefused
from cpu_tiers.nova.compute.starting_consumers import (
    StartingConsumers,
    read_consumers,
    refusing_unknown_servers,
)
from tests.nova.broken_answers import DATABASE_FAULTS
from tests.nova.compute.reports import NO_ALLOCATIONS, host_report, record

ONE = {"one": {"VCPU": record(8)}}
SHARES = ReportDecision(nodes=False, no_numa=False, shares=True)
NODES = ReportDecision(nodes=True, no_numa=False, shares=False)


@pytest.fixture(params=DATABASE_FAULTS)
def away(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have Nova's database not answer."""
    raising = mock.Mock(side_effect=lambda *_: DATABASE_FAULTS[request.param](lambda: None))
    monkeypatch.setattr(starting_consumers, "find_missing_shares", raising)


@pytest.mark.parametrize("fault", NO_ALLOCATIONS)
@pytest.mark.parametrize("decision", [SHARES, NODES], ids=["shares", "nodes"])
def test_a_start_without_an_answer_of_placement_reshapes_nothing(
    fault: Exception, decision: ReportDecision
) -> None:
    host = host_report(ONE, startup=True, in_placement=fault)
    assert read_consumers(host, decision) is None
    assert not host.as_if_running().is_starting


@pytest.mark.usefixtures("away")
def test_a_start_without_an_answer_of_the_database_reshapes_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert read_consumers(host_report(ONE, startup=True), SHARES) is None
    assert "Whether servers on one need a reshape is not known: " in caplog.text


@pytest.mark.usefixtures("away")
def test_the_database_is_not_asked_for_shares_that_are_not_reported() -> None:
    assert read_consumers(host_report(ONE, startup=True), NODES) == StartingConsumers()


@pytest.mark.parametrize(
    ("startup", "allocations", "shares"),
    [
        pytest.param(False, None, True, id="nova-compute runs"),
        pytest.param(True, {}, True, id="Nova has read the allocations for the second call"),
        pytest.param(True, None, False, id="every option is off"),
    ],
)
def test_placement_is_not_asked_where_nothing_is_reshaped(
    startup: bool, allocations: dict[str, Any] | None, shares: bool
) -> None:
    away = ConnectFailure("reset")
    host = host_report({"one": {}}, startup=startup, allocations=allocations, in_placement=away)
    decision = ReportDecision(nodes=False, no_numa=False, shares=shares)
    assert read_consumers(host, decision) == StartingConsumers()


@pytest.mark.parametrize("fault", DATABASE_FAULTS)
def test_a_reshape_without_the_database_is_refused_with_a_message(fault: str) -> None:
    expected = "Nova's database does not tell the servers on one .* start nova-compute again"
    with (
        pytest.raises(MoveRefused, match=expected),
        refusing_unknown_servers(host_report(ONE, startup=True)),
    ):
        DATABASE_FAULTS[fault](lambda: None)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(
            oslo_messaging.RemoteError("OperationalError", "lost connection", ["Traceback"]),
            "Remote error: OperationalError lost connection",
            id="without the traceback in nova-conductor",
        ),
        pytest.param(oslo_messaging.MessagingTimeout(), "MessagingTimeout()", id="no text"),
    ],
)
def test_the_message_is_a_single_line(error: Exception, reason: str) -> None:
    host = host_report(ONE, startup=True)
    with pytest.raises(MoveRefused) as caught, refusing_unknown_servers(host):
        raise error
    assert f"the servers on one ({reason}). Nothing was changed" in str(caught.value)


def test_another_reason_of_a_failed_reshape_stays() -> None:
    full = MoveRefused(error="no room")
    with (
        pytest.raises(MoveRefused) as caught,
        refusing_unknown_servers(host_report(ONE, startup=True)),
    ):
        raise full
    assert caught.value is full
