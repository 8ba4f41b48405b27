"""``host watch`` beside a Placement that fails: no failure ends what asks it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cpu_tiers.placement.errors import PlacementMisconfigured, PlacementUnavailable
from cpu_tiers.tools.host import watch
from cpu_tiers.tools.host.watched_guest import HostReading
from cpu_tiers.tools.tiers.sold import HostShares
from tests.unit.tiers.sales import sale

FAILURES = (
    PlacementUnavailable("late"),
    PlacementMisconfigured("no endpoint yet"),
    KeyError("x"),
    MemoryError(),
    RecursionError(),
    OSError("no file"),
)


def test_placement_is_asked_again_after_every_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    waiting, asked_again = list(FAILURES), threading.Event()

    @contextmanager
    def connect(_conf: object) -> Iterator[None]:
        if waiting:
            raise waiting.pop(0)
        yield

    def read_shares(*_: object) -> HostShares:
        return HostShares(capacity=800, held={}, sale=sale(8, 800))

    def told(*_: Any) -> int:
        watch._ASK_SECONDS = 3600.0  # the thread, a daemon, sleeps from now on
        asked_again.set()
        return 0

    monkeypatch.setattr(watch, "connect", connect)
    monkeypatch.setattr(watch, "read_shares", read_shares)
    monkeypatch.setattr(watch, "tell_file_faults", told)
    monkeypatch.setattr(watch, "_ASK_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_ASK_AGAIN_SECONDS", 0.0)
    host: Any = SimpleNamespace(
        sale_by_placement=None, pending_changes=0, file_faults=0, reading=HostReading()
    )
    watch._ask_placement(host, SimpleNamespace(), lambda: "one")  # type: ignore[arg-type]
    assert asked_again.wait(10)
    assert host.sale_by_placement == sale(8, 800)
    assert host.describes_again
    warnings = [record for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == len(FAILURES) - 1  # the other is of nova.conf
    assert "MemoryError()" in caplog.text
