"""Which errors end nova-compute; ``tests/processes`` has the end of real processes."""

import logging
import os
from typing import Any

import pytest
from nova import exception

from cpu_tiers.nova.compute import host_report, start_refusal
from cpu_tiers.nova.seams import SeamMismatch

FAILED = "Resource provider inventory and allocation data migration failed: full"


class Ended(BaseException):
    """The status of a process that ended."""


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(status: int) -> None:
        raise Ended(status)

    monkeypatch.setattr(os, "_exit", end)
    monkeypatch.setattr(logging, "shutdown", lambda: None)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(SeamMismatch("no fit"), "no fit", id="a function of another form"),
        pytest.param(start_refusal.ReportRefused("off"), "off", id="a refused option"),
        pytest.param(start_refusal.MoveRefused(error="full"), FAILED, id="no room for servers"),
        pytest.param(ValueError("gold"), "gold", id="a further kind"),
    ],
)
def test_a_refusal_ends_the_process_with_a_single_message(
    caplog: pytest.LogCaptureFixture, error: Exception, reason: str
) -> None:
    with pytest.raises(Ended, match=r"^1$"), start_refusal.refusals_end_process(ValueError):
        raise error
    messages = [(record.levelname, record.getMessage()) for record in caplog.records]
    assert messages == [("CRITICAL", f"nova-compute does not start: {reason}")]
    assert caplog.records[0].exc_info is None


@pytest.mark.parametrize(
    "error",
    [
        exception.InvalidConfiguration("off"),
        exception.ReshapeFailed(error="full"),
        ValueError("gold"),
    ],
)
def test_an_error_of_nova_itself_is_left_to_nova(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, start_refusal.refusals_end_process():
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    ("error", "startup", "is_edited", "ends"),
    [
        pytest.param(start_refusal.ReportRefused("off"), True, False, True, id="a refusal"),
        pytest.param(start_refusal.ReportRefused("off"), False, False, False, id="while running"),
        pytest.param(exception.ReshapeFailed(error="full"), True, True, True, id="our reshape"),
        pytest.param(exception.ReshapeFailed(error="full"), True, False, False, id="Nova's own"),
    ],
)
def test_a_run_of_the_resource_tracker(
    error: Exception, startup: bool, is_edited: bool, ends: bool
) -> None:
    def update(self: object, context: object, compute_node: object, startup: bool) -> None:
        run: Any = host_report.CURRENT.get()
        if is_edited:
            run.edited.add("one")
        raise error

    (wrap,) = [seam.wrap for seam in host_report.SEAMS if seam.wrap]
    wrapper = wrap(update)
    with pytest.raises(Ended if ends else type(error)):
        wrapper(None, None, None, startup)
