"""Bounds the time in which a service or a database must answer.

oslo.messaging bounds neither the time to connect to a message bus, nor oslo.db the time to
connect to a database. So a question is asked in a thread that does not keep the command from
ending.
"""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

_Answer = TypeVar("_Answer")

_END = object()
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


def each_in_time(
    items: Iterable[_Answer], seconds: float, waiting: Callable[[], None]
) -> Iterator[_Answer]:
    """Yield items, each of which must come within some seconds after it was asked for.

    :param waiting: is called every two seconds until an item comes.
    :raises TimeoutError: the next item did not come in time.
    """
    source = iter(items)
    while (item := in_time(lambda: next(source, _END), seconds, waiting)) is not _END:
        yield item  # type: ignore[misc]  # mypy does not narrow by a sentinel
