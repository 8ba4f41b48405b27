import itertools
import threading
import time
from collections.abc import Iterator

import pytest

from cpu_tiers.nova.commands import in_time as module
from cpu_tiers.nova.commands.in_time import each_in_time, in_time


def test_an_answer_and_an_error_pass() -> None:
    assert in_time(lambda: 3, 10) == 3
    with pytest.raises(ZeroDivisionError):
        in_time(lambda: 1 // 0, 10)


def test_each_item_has_the_whole_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_STEP_SECONDS", 0.1)
    waits: list[None] = []
    never = threading.Event()

    def slow() -> Iterator[int]:
        for number in itertools.count():
            time.sleep(0.25)
            yield number
            if number == 2:
                never.wait()

    items = each_in_time(slow(), 0.5, lambda: waits.append(None))
    assert [next(items) for _ in range(3)] == [0, 1, 2]  # 0.75 s in all
    with pytest.raises(TimeoutError, match="no answer in time"):
        next(items)
    never.set()
    assert len(waits) >= 6  # two in each wait of 0.25 s, and more in the last
    assert list(each_in_time([1, 2], 10, lambda: None)) == [1, 2]
