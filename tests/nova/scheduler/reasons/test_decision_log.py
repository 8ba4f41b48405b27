"""The logger of decisions: who waits for the disk, and where a line ends up."""

import json
import logging
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.nova.scheduler.reasons import decision_log
from cpu_tiers.nova.scheduler.reasons.decision_log import MOST_WAITING, DecisionLog
from tests.nova.scheduler.reasons.written_lines import lines_of


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Callable[[int], str | None]]:
    """Write numbered decisions into a file of the test."""
    yield lambda number: decision_log.write(str(tmp_path / "decisions"), {"number": number})
    decision_log.DECISIONS.handlers = []
    decision_log._started.cache_clear()


def numbers(file: Path, number: int) -> list[int]:
    return [json.loads(line)["number"] for line in lines_of(file, number)]


def test_a_line_for_each_decision_and_logrotate(tmp_path: Path, write: Any) -> None:
    file, older = tmp_path / "decisions", tmp_path / "decisions.1"
    assert [write(number) for number in range(3)] == [None] * 3
    assert numbers(file, 3) == [0, 1, 2]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.rename(older)
    write(3)
    assert numbers(file, 1) == [3]
    assert numbers(older, 3) == [0, 1, 2]


def test_the_lines_stay_out_of_the_log_of_the_service(
    write: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        write(1)
    assert caplog.records == []


def test_a_long_line_is_one_write(tmp_path: Path) -> None:
    """Python's own buffer of 8 KiB would divide the line, and others write between the parts."""
    stream = DecisionLog(str(tmp_path / "decisions"))._file._open()
    stream.write("x" * 100_000 + "\n")
    assert (tmp_path / "decisions").stat().st_size == 0
    stream.flush()
    assert (tmp_path / "decisions").stat().st_size == 100_001


@pytest.mark.parametrize("place", ["no folder", "a folder", "a link"])
def test_what_stands_in_the_place_of_the_file(tmp_path: Path, write: Any, place: str) -> None:
    file = tmp_path / "decisions"
    if place == "no folder":
        file = tmp_path / "none" / "decisions"
    elif place == "a folder":
        file.mkdir()
    else:
        file.symlink_to(tmp_path / "elsewhere")
    faults = (decision_log.write(str(file), {"number": number}) for number in range(100_000))
    assert "Error" in next(fault for fault in faults if fault)
    assert not (tmp_path / "elsewhere").exists()


def test_a_disk_that_hangs_stops_nothing(
    tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, native = tmp_path / "decisions", decision_log._threading()
    disk_answers, asked = native.Event(), native.Event()
    opened = decision_log._opened

    def hang(path: str, flags: int) -> int:
        asked.set()
        disk_answers.wait(60)
        return opened(path, flags)

    monkeypatch.setattr(decision_log, "_opened", hang)
    write(0)
    assert asked.wait(60)  # the thread has taken the first decision out of the queue
    assert [write(number) for number in range(1, MOST_WAITING + 1)] == [None] * MOST_WAITING
    assert write(MOST_WAITING + 1) == "1000 decisions wait for the disk"
    disk_answers.set()
    assert numbers(file, MOST_WAITING + 1) == list(range(MOST_WAITING + 1))
    assert write(7) is None


EVENTLET = """
import eventlet
eventlet.monkey_patch()
import os, pathlib, sys, time
from eventlet import patcher
from cpu_tiers.nova.scheduler.reasons import decision_log
native = patcher.original("threading")
answers, asked, opened = native.Event(), native.Event(), decision_log._opened
def hang(path, flags):
    asked.set()
    answers.wait(60)
    return opened(path, flags)
decision_log._opened = hang
file = pathlib.Path(sys.argv[1])
greens = [eventlet.spawn(decision_log.write, str(file), {"number": number}) for number in range(5)]
assert [green.wait() for green in greens] == [None] * 5
assert asked.wait(60)
eventlet.sleep(0.1)  # the hub runs while the disk hangs
assert not file.exists()
answers.set()
for _ in range(500):
    if file.exists() and file.read_text().count("\\n") == 5:
        break
    eventlet.sleep(0.02)
print(file.read_text().count("number"), decision_log.write(str(file), {}))
"""


def test_a_disk_that_hangs_stops_no_green_thread(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", EVENTLET, str(tmp_path / "decisions")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (run.stdout, run.returncode) == ("5 None\n", 0), run.stderr
