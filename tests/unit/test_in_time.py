import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from cpu_tiers import in_time as module
from cpu_tiers.in_time import TimeBudget, in_time

DROPPED = "Dropped, so that no answer waits: "


def test_an_answer_and_an_error_pass() -> None:
    assert in_time(lambda: 3, 10) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0, 10)


def test_hanging_work_is_dropped_with_a_single_warning(caplog: pytest.LogCaptureFixture) -> None:
    """The budget is spent once, and then not before the pause has ended."""
    ends, tried = threading.Event(), list[int]()

    def hang() -> None:
        tried.append(1)
        ends.wait(60)

    beside = TimeBudget("The record", seconds=0.2, pause=0.5, warning_pause=0.5)
    start = time.monotonic()
    for _ in range(10):
        assert beside.do(hang) is None
    assert time.monotonic() - start < 0.5  # 0.2 once, not 10 times
    assert len(tried) == 1
    assert caplog.messages == [
        DROPPED + "The record: not done in 0.2 seconds (1 since the last warning)"
    ]
    time.sleep(0.6)
    assert beside.do(lambda: 3) == 3
    assert beside.do(hang) is None
    assert caplog.messages[1:] == [
        DROPPED + "The record: not done in 0.2 seconds (10 since the last warning)"
    ]
    ends.set()


def test_work_that_fails_is_tried_each_time_and_warned_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    beside = TimeBudget("The record", seconds=5)
    for _ in range(10):
        assert beside.do(lambda: 1 // 0) is None
    assert beside.do(lambda: 3) == 3
    (message,) = caplog.messages
    assert message.startswith(DROPPED + "The record: ZeroDivisionError(")
    assert message.endswith(" (1 since the last warning)")


def test_after_a_pause_a_single_thread_tries_for_all(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Twenty threads at once: all try before the first pause, and one after each pause."""
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    ends, all_try, tried = threading.Event(), threading.Barrier(20, timeout=60), list[int]()
    beside = TimeBudget("The record", seconds=1)

    def hang() -> None:
        tried.append(1)
        ends.wait(60)

    def hang_with_all() -> None:
        all_try.wait()
        hang()

    with ThreadPoolExecutor(20) as threads:
        for is_first in (True, False, False):
            work = hang_with_all if is_first else hang
            assert list(threads.map(beside.do, [work] * 20)) == [None] * 20
            now += 61
        assert len(tried) == 20 + 1 + 1
        assert list(threads.map(beside.do, [lambda: 3] * 20)).count(3) >= 1
        assert list(threads.map(beside.do, [lambda: 3] * 20)) == [3] * 20
    ends.set()
    # The first of twenty threads warns, and after each pause the one that tries.
    late = DROPPED + "The record: not done in 1 seconds ("
    assert [message.startswith(late) for message in caplog.messages] == [True] * 3
