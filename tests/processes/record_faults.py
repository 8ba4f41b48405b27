"""What is in the place of the record of decisions while the workers of nova-scheduler write."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

from tests.processes.modes import Mode

MIB = 2**20


@contextmanager
def full_disk(mode: Mode) -> Iterator[None]:
    """A file of the largest size that a worker may write now, but for 100 bytes."""
    with mode.record.open("ab") as file:
        file.truncate(MIB - 100)
    pids = mode.workers()
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (MIB, resource.RLIM_INFINITY))
    yield
    for pid in pids:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)


@contextmanager
def pipe(mode: Mode) -> Iterator[None]:
    """A pipe without a reader."""
    os.mkfifo(mode.record)
    yield


@contextmanager
def folder(mode: Mode) -> Iterator[None]:
    mode.record.mkdir()
    yield
    mode.record.rmdir()
