"""Contexts in which Placement is down, or in which a query must not be made or must not fail."""

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

from keystoneauth1.exceptions import ConnectFailure
from nova.scheduler.client import report


@contextlib.contextmanager
def placement_away() -> Iterator[None]:
    """Have nobody answer when Nova sends a GET request to Placement."""
    away = ConnectFailure("connection refused")
    with mock.patch.object(report.SchedulerReportClient, "get", side_effect=away) as get:
        yield
    get.assert_called()


@contextlib.contextmanager
def no_bad_query() -> Iterator[None]:
    """Fail if Placement refuses a query of Nova."""
    with mock.patch("nova.scheduler.client.report.LOG.error") as error:
        yield
    error.assert_not_called()


def reading_is_an_error() -> Any:
    """Return a context in which nobody may work out scores."""
    return mock.patch("cpu_tiers.nova.scheduler.scores.make_forest", side_effect=AssertionError)
