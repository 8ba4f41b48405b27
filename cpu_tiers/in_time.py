"""Bounds the time in which a service, a database or a disk must answer.

oslo.messaging bounds neither the time to connect to a message bus, nor oslo.db the time to
connect to a database, nor the kernel the time of a write to a disk. So a question is asked in a
thread that does not keep the program from ending.
"""

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from threading import Lock, Thread
from typing import TypeVar

LOG = logging.getLogger(__name__)

_Answer = TypeVar("_Answer")

_STEP_SECONDS = 2.0


def in_time(
    ask: Callable[[], _Answer], seconds: float, waiting: Callable[[], None] = lambda: None
) -> _Answer:
    """Return the answer of ``ask``, or raise its error.

    :param waiting: is called every two seconds until the answer comes.
    :raises TimeoutError: the answer did not come in time.
    """
    answer: Future[_Answer] = Future()

    def answer_or_fail() -> None:
        try:
            answer.set_result(ask())
        except Exception as error:
            answer.set_exception(error)

    Thread(target=answer_or_fail, daemon=True).start()
    while seconds > _STEP_SECONDS and not wait([answer], _STEP_SECONDS).done:
        seconds -= _STEP_SECONDS
        waiting()
    try:
        return answer.result(timeout=seconds)
    except TimeoutError as error:
        raise TimeoutError("no answer in time") from error


class TimeBudget:
    """Work that a service of Nova does beside an answer, which costs the answer little time.

    Work that fails, or is not done in time, is dropped. After work that was not done in time, all
    such work is dropped for ``pause`` seconds without being tried. Then a single thread tries,
    while the work of all further threads is dropped: a disk or a service that hangs costs one
    answer the budget once in a while, and keeps one thread more each time.

    :param what: the name of the work in the warning.
    :param seconds: the budget, which docs/reference/budgets.rst names.
    :param warning_pause: in so many seconds, at most one warning is logged.
    """

    def __init__(
        self, what: str, seconds: float, *, pause: float = 60.0, warning_pause: float = 60.0
    ) -> None:
        self._what, self._seconds = what, seconds
        self._pause, self._warning_pause = pause, warning_pause
        self._resumes_at = self._warns_at = 0.0
        self._dropped = 0
        self._lock = Lock()

    def do(self, work: Callable[[], _Answer]) -> _Answer | None:
        """Return the result of the work; ``None`` if the work is dropped."""
        if not self._may_try():
            return None
        resumes_at = 0.0
        try:
            result = in_time(work, self._seconds)
        except TimeoutError:
            reason = f"not done in {self._seconds:g} seconds"
            resumes_at = time.monotonic() + self._pause
        except Exception as error:
            reason = repr(error)
        else:
            self._resumes_at = 0.0
            return result
        # Not in the ``except``: oslo.log appends the error that is being handled to each message.
        self.drop(reason, resumes_at)
        return None

    def _may_try(self) -> bool:
        """Tell whether a thread may try the work; count the work as dropped if not."""
        now = time.monotonic()
        with self._lock:
            if now < self._resumes_at:
                self._dropped += 1
                return False
            if self._resumes_at:  # the first thread after a pause tries for all
                self._resumes_at = now + self._pause
            return True

    def drop(self, reason: str, resumes_at: float = 0.0) -> None:
        """Count work that was not done, and warn of it, if the last warning is old."""
        now = time.monotonic()
        with self._lock:
            self._resumes_at = resumes_at
            self._dropped += 1
            if now < self._warns_at:
                return
            self._warns_at = now + self._warning_pause
            dropped, self._dropped = self._dropped, 0
        LOG.warning(
            "Dropped, so that no answer waits: %s: %s (%d since the last warning)",
            self._what,
            reason,
            dropped,
        )
