"""A file of JSON documents is bounded, private, and nobody waits for its lock."""

import fcntl
import json
import os
import resource
import signal
import stat
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cpu_tiers.bounded_file import append


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def documents(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def test_a_full_file_takes_another_name(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    document = {"text": "x" * 400_000}  # two of them are less than a MiB, three are more
    for number in range(5):
        append(file, {**document, "number": number}, max_mb=1)
    of = [each["number"] for each in documents(file)]
    of_older = [each["number"] for each in documents(file.with_name("decisions.1"))]
    assert (of_older, of) == ([2, 3], [4])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_document_that_is_larger_than_the_file_may_be(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    for number in range(2):
        append(file, {"text": "x" * 2**20, "number": number}, max_mb=1)
    assert json.loads(file.read_text())["number"] == 1


@pytest.mark.parametrize("threads", [2, 16, 100])
def test_threads(tmp_path: Path, threads: int) -> None:
    """1,600 lines of 2 kB are three files of 1 MiB: the last two have all lines but the first."""
    file = tmp_path / "decisions"
    before = open_files()
    with ThreadPoolExecutor(threads) as pool:
        jobs = [
            pool.submit(append, file, {"text": "x" * 1980, "number": number}, max_mb=1)
            for number in range(1600)
        ]
        for job in jobs:
            job.result()
    older = file.with_name("decisions.1")
    numbers = [each["number"] for each in documents(older) + documents(file)]
    assert len(numbers) == len(set(numbers))
    assert older.stat().st_size > 900_000
    assert max(older.stat().st_size, file.stat().st_size) <= 2 * 2**20 + threads * 2100
    assert sorted(each.name for each in tmp_path.iterdir()) == ["decisions", "decisions.1"]
    assert open_files() <= before


@contextmanager
def stopped_holder(file: Path) -> Iterator[int]:
    """Stop a process that has the lock of the file."""
    ready, written = os.pipe()
    if not (child := os.fork()):
        descriptor = os.open(file, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(written, b"x")
        signal.pause()
    os.read(ready, 1)
    os.kill(child, signal.SIGSTOP)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_stopped_process_with_the_lock(tmp_path: Path) -> None:
    """The file grows to twice its size; further lines are refused until the process is gone."""
    file = tmp_path / "decisions"
    document = {"text": "x" * 400_000}
    append(file, document, max_mb=1)
    with stopped_holder(file):
        start = time.monotonic()
        for _ in range(4):  # 5 x 400 kB < 2 MiB
            append(file, document, max_mb=1)
        with pytest.raises(OSError, match="the process that renames it has stopped"):
            append(file, document, max_mb=1)
        assert time.monotonic() - start < 5
    assert len(documents(file)) == 5
    append(file, document, max_mb=1)
    assert len(documents(file)) == 1
    assert len(documents(file.with_name("decisions.1"))) == 5


def test_a_half_line_of_a_full_disk_costs_no_further_line(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    append(file, {"number": 1}, max_mb=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20, hard))  # the kernel writes a part, then refuses
    try:
        for _ in range(2):
            with pytest.raises(OSError, match=r"no room for the line|File too large"):
                append(file, {"number": 2}, max_mb=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    append(file, {"number": 3}, max_mb=1)
    first, half, third = file.read_text().splitlines()
    assert (json.loads(first), half, json.loads(third)) == (
        {"number": 1},
        '{"numbe',
        {"number": 3},
    )


def make(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to("precious")
    elif kind == "device":
        path.symlink_to("/dev/null")


@pytest.mark.parametrize("kind", ["pipe", "folder", "link", "device", "no folder"])
def test_a_path_that_is_no_regular_file(tmp_path: Path, kind: str) -> None:
    (tmp_path / "precious").write_text("precious")
    file = tmp_path / "decisions" / "file" if kind == "no folder" else tmp_path / "decisions"
    make(file, kind)
    before = open_files()
    with pytest.raises(OSError, match=r"no regular file|directory|symbolic links"):
        append(file, {}, max_mb=1)
    assert (tmp_path / "precious").read_text() == "precious"
    assert open_files() <= before


def test_a_folder_in_place_of_the_older_file(tmp_path: Path) -> None:
    file = tmp_path / "decisions"
    file.with_name("decisions.1").mkdir()
    append(file, {"text": "x" * 2**20}, max_mb=1)
    before = open_files()
    with pytest.raises(IsADirectoryError):
        append(file, {}, max_mb=1)
    assert open_files() <= before
