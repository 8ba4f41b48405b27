"""Waits of Nova's tests that end soon after the event, and that a busy machine does not end early.

Nova's helpers look twice a second, and give up after five seconds.
"""

import functools
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

from nova.tests.functional import integrated_helpers

PATIENCE = 120
"""Seconds; nova-scheduler took 70 seconds for a server of four NUMA nodes on a busy machine."""


class _NotYetError(Exception):
    """Nova's helper has looked in vain, and would sleep now."""


def patiently(wait: Callable[..., Any]) -> Callable[..., Any]:
    """Return a helper of Nova that looks more often and for a longer time."""

    @functools.wraps(wait)
    def look(*args: Any, **kwargs: Any) -> Any:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                with mock.patch.object(integrated_helpers, "time", SimpleNamespace(sleep=_stop)):
                    return wait(*args, **kwargs)
            except _NotYetError:
                let_work()
        return wait(*args, **kwargs)  # for its error

    return look


def _stop(_seconds: float) -> None:
    raise _NotYetError


def let_work() -> None:
    """Sleep until the services of this process have nothing to do, at most half a second."""
    for _ in range(10):
        before = time.process_time()
        time.sleep(0.05)
        if time.process_time() - before < 0.01:
            return


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for a condition.

    :raises AssertionError: the condition does not come true.
    """
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE} seconds"
        let_work()
