"""The requests to Placement and the statements to Nova's databases that services send."""

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import fixtures
from nova import context as nova_context
from nova.scheduler.client.report import SchedulerReportClient
from nova.tests.functional.api import client as api_client
from placement import db_api
from sqlalchemy import event
from sqlalchemy.engine import Engine

METHODS = ("get", "put", "post", "delete")

Send = Callable[..., Any]
Answer = Callable[[Send, str, str], Any]
"""Answers a request: takes a function that sends the request, the method, and the URL."""

BY_NOVA = " by Nova"
"""Added to a request that Nova sends because of a report of cpu-tiers."""

Sent = tuple[str, str, str]
"""A request: its method, its URL and its body."""

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DATA = ("SELECT", "INSERT", "UPDATE", "DELETE")
_PASS_THROUGH = {"original", "update_to_placement"}
"""The names by which our wrappers know the function of Nova around which they are."""


@dataclass(frozen=True, slots=True)
class Counts:
    """What one operation sent.

    :param requests: the number of requests to Placement, by method and path. A uuid in a path
        is ``{uuid}``.
    :param statements: the number of statements to Nova's databases, by their beginning.
    :param ours: the part of ``requests`` that only cpu-tiers sends.
    """

    requests: Counter[str] = field(default_factory=Counter)
    statements: Counter[str] = field(default_factory=Counter)
    ours: Counter[str] = field(default_factory=Counter)


class Traffic(fixtures.Fixture):
    """Counts the requests to Placement and the statements to Nova's databases.

    The test itself asks nova-api again and again for the state of a server. The statements of
    these requests do not count. They run in the thread of the test and, where nova-api reads a
    cell, in a thread of its own.

    :param answer: answers each request of cpu-tiers, instead of Placement.
    :param query: called for each query of cpu-tiers to Nova's databases.
    """

    def __init__(self, answer: Answer | None = None, query: Answer | None = None) -> None:
        super().__init__()
        self.answer = answer
        self.query = query
        self.usual: Container[Sent] | None = None
        """The requests that Nova sends without cpu-tiers. If the requests are given, each other
        request is one of cpu-tiers, too, whoever sends the request."""
        self.sent: list[Sent] = []
        self.requests: list[str] = []
        self.ours: list[str] = []
        self.statements: list[str] = []
        self._asking = threading.local()
        self._call: tuple[FrameType, int] | None = None

    def _setUp(self) -> None:  # noqa: N802  # fixtures looks for this name
        for method in METHODS:
            send = getattr(SchedulerReportClient, method)
            self.useFixture(
                fixtures.MonkeyPatch(
                    f"nova.scheduler.client.report.SchedulerReportClient.{method}",
                    self._recorded(method, send),
                )
            )
        event.listen(Engine, "before_cursor_execute", self._count)
        self.addCleanup(event.remove, Engine, "before_cursor_execute", self._count)
        get = api_client.TestOpenStackClient.api_get
        gather = nova_context.scatter_gather_cells

        def uncounted_get(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
            with self._is_asking():
                return get(client, url, *args, **kwargs)

        def gather_uncounted(
            context: Any, cells: Any, timeout: Any, read: Callable[..., Any], *args: Any, **kw: Any
        ) -> Any:
            """Read the cells for nova-api, in other threads."""
            if self._has_asked():
                read = self._is_asking()(read)
            return gather(context, cells, timeout, read, *args, **kw)

        name = "nova.tests.functional.api.client.TestOpenStackClient.api_get"
        self.useFixture(fixtures.MonkeyPatch(name, uncounted_get))
        self.useFixture(
            fixtures.MonkeyPatch("nova.context.scatter_gather_cells", gather_uncounted)
        )

    @contextmanager
    def _is_asking(self) -> Iterator[None]:
        """Let the statements of this thread not count."""
        before = self._has_asked()
        self._asking.now = True
        try:
            yield
        finally:
            self._asking.now = before

    def _has_asked(self) -> bool:
        """Tell whether the statements of this thread do not count."""
        return getattr(self._asking, "now", False)

    def _recorded(self, method: str, send: Send) -> Send:
        def recorded(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
            path = path_of(method, url)
            self.requests.append(path)
            sent = method, url, repr(args[:1])
            self.sent.append(sent)
            is_novas = not is_ours(sys._getframe(1))
            if is_novas and (self.usual is None or sent in self.usual):
                return send(client, url, *args, **kwargs)
            self.ours.append(f"{path}{BY_NOVA if is_novas else ''}")
            if self.answer is None:
                return send(client, url, *args, **kwargs)
            return self.answer(lambda: send(client, url, *args, **kwargs), method, url)

        return recorded

    def _count(self, connection: Any, cursor: Any, statement: str, *args: Any) -> None:
        if self._has_asked() or not statement.startswith(_DATA):
            return
        if statement != "SELECT 1" and connection.engine is not db_api.get_placement_engine():
            self.statements.append(_beginning(statement))
            call = self.query and _call_of_ours(sys._getframe(1))
            # One query of an object of Nova may have several statements.
            if self.query and call and call != self._call:
                self._call = call
                self.query(lambda: None, "query", _beginning(statement))

    @contextmanager
    def of_step(self) -> Iterator[Counts]:
        """Return the counts of an operation, once the context has ended and all is quiet."""
        requests, ours = len(self.requests), len(self.ours)
        statements = len(self.statements)
        counts = Counts()
        yield counts
        self.settle()
        counts.requests.update(self.requests[requests:])
        counts.ours.update(self.ours[ours:])
        counts.statements.update(self.statements[statements:])

    def settle(self) -> None:
        """Wait until no service sends anything any more."""
        quiet, before = 0, (0, 0)
        while quiet < 10:
            time.sleep(0.02)
            now = len(self.requests), len(self.statements)
            quiet = quiet + 1 if now == before else 0
            before = now


def path_of(method: str, url: str) -> str:
    """Return the method and the path of a request, such as ``GET /allocations/{uuid}``."""
    return f"{method.upper()} {_UUID.sub('{uuid}', url.partition('?')[0])}"


def _beginning(statement: str) -> str:
    """Return the verb and the table of a statement."""
    found = re.search(r"(?:FROM|INTO|UPDATE)[\s(]+(?!SELECT)(\w+)", statement)
    return f"{statement.split(maxsplit=1)[0]} {found.group(1) if found else ''}"


def is_ours(frame: FrameType | None) -> bool:
    """Tell whether a call is made by cpu-tiers, and not by Nova inside a wrapper of cpu-tiers.

    :param frame: the frame of the call.
    """
    return _call_of_ours(frame) is not None


def _call_of_ours(frame: FrameType | None) -> tuple[FrameType, int] | None:
    """Return the function of cpu-tiers that has made a call, and the place in the function."""
    inner = None
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        # The wrapper around a function of Nova is in seams.py, and only calls its steps.
        is_own = module.startswith("cpu_tiers.") and module != "cpu_tiers.nova.seams"
        if is_own and not _is_overridden(inner, frame):
            if not _PASS_THROUGH & {*frame.f_code.co_freevars, *frame.f_code.co_varnames}:
                return frame, frame.f_lasti
            # joined_answers sends Nova's query first, and then the queries of cpu-tiers.
            values = frame.f_locals
            if values.get("request", values.get("resources")) is not values.get("resources"):
                return frame, frame.f_lasti
        inner, frame = frame, frame.f_back
    return None


def _is_overridden(inner: FrameType | None, frame: FrameType) -> bool:
    """Tell whether a method of our driver has called Nova's method, which it overrides."""
    if inner is None or inner.f_code.co_name != frame.f_code.co_name:
        return False
    return str(inner.f_globals.get("__name__", "")).startswith("nova.")
