"""The logger ``cpu_tiers.decisions``: one JSON document a line, in a file of its own.

A thread writes the file: a hanging disk stops no decision. Under eventlet, the thread is a native
thread, and the queue never switches green threads: only the writing thread touches the file, and
only the service logs. All processes of nova-scheduler on a machine write the same file: each line
is one write at the end of the file. logrotate may rename the file at any time.
"""

import functools
import json
import logging
import os
import stat
import sys
import threading
from _queue import SimpleQueue  # that of ``queue`` is another class under eventlet
from collections.abc import Mapping
from contextlib import suppress
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler
from typing import Any, TextIO

DECISIONS = logging.getLogger("cpu_tiers.decisions")

MOST_WAITING = 1000
"""While so many decisions wait for the disk, further decisions are dropped: 1 to 10 MB."""

_MOST_BYTES = 2**20
"""A line of up to so many bytes is one write."""

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOFOLLOW


class DecisionLog(QueueHandler):
    """Hands decisions to the writing thread.

    :param path: the file, in a folder that exists.
    """

    def __init__(self, path: str) -> None:
        self._waiting: SimpleQueue[logging.LogRecord] = SimpleQueue()
        super().__init__(self._waiting)
        self._file = _File(path)
        self._dropped = False
        _Listener(self.queue, self._file).start()

    def enqueue(self, record: logging.LogRecord) -> None:
        """Add a decision to the queue, if the queue has room."""
        if self._waiting.qsize() >= MOST_WAITING:
            self._dropped = True
        else:
            self._waiting.put(record)

    def take_fault(self) -> str | None:
        """Return why a decision since the last call was not written, or ``None``."""
        fault = f"{MOST_WAITING} decisions wait for the disk" if self._dropped else None
        self._dropped = False
        return fault or self._file.take_fault()


class _File(WatchedFileHandler):
    """Appends lines to a file, which only the user of the process may read."""

    _fault: str | None = None

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", delay=True)

    def take_fault(self) -> str | None:
        fault, self._fault = self._fault, None
        return fault

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; a fault is kept for the service to tell."""
        try:
            super().emit(record)
        except (OSError, ValueError):  # the file that was renamed cannot be closed
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # of the base class
        """Keep the fault, and open the file anew for the next line."""
        self._fault = repr(sys.exc_info()[1])
        stream, self.stream = self.stream, None  # as with ``delay``
        if stream:
            with suppress(OSError, ValueError):
                stream.close()

    def _open(self) -> TextIO:  # type: ignore[override]  # typeshed knows only the default
        stream = open(  # noqa: SIM115  # the handler closes it
            self.baseFilename, "a", _MOST_BYTES, encoding="utf-8", opener=_opened
        )
        if self._fault:
            stream.write("\n")  # the fault may have left half a line
        return stream


class _Listener(QueueListener):
    """A listener whose thread is a native thread, also under eventlet."""

    def start(self) -> None:
        """Start the thread, which does not keep the process from ending."""
        _threading().Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self.handle(self.dequeue(block=True))


def _threading() -> Any:
    """Return the module ``threading`` as Python has it."""
    if "eventlet" not in sys.modules:
        return threading
    from eventlet import patcher

    return patcher.original("threading")


def _opened(path: str, _: int) -> int:
    # Without O_NONBLOCK, a pipe in place of the file would keep the thread waiting.
    descriptor = os.open(path, _FLAGS, mode=0o600)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "no regular file")
    return descriptor


_STARTING = threading.Lock()


def write(path: str, document: Mapping[str, Any]) -> str | None:
    """Hand a decision to the writing thread.

    :returns: why an earlier decision was not written, or ``None``.
    """
    with _STARTING:
        handler = _started(path, os.getpid())
    DECISIONS.info("%s", json.dumps(document, separators=(",", ":"), default=str))
    return handler.take_fault()


@functools.lru_cache(maxsize=1)
def _started(path: str, _pid: int) -> DecisionLog:
    """Have a thread write the decisions of this process: a fork has no thread of its parent."""
    handler = DecisionLog(path)
    DECISIONS.handlers = [handler]
    DECISIONS.setLevel(logging.INFO)
    DECISIONS.propagate = False  # not into the log of nova-scheduler
    return handler
