"""What is repeated after how long, by the headers and the exceptions of real libraries."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
import requests
from keystoneauth1 import exceptions as ksa

from cpu_tiers.tools.http.retries import (
    RetryPolicy,
    is_json_type,
    may_pass,
    retry_after_of,
    retrying,
    seconds_of,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("", 0, id="no header"),
        pytest.param("0", 0, id="at once"),
        pytest.param(" 7 ", 7, id="seconds"),
        pytest.param("-5", 0, id="seconds before now"),
        pytest.param("1.5", 0, id="no whole number"),
        pytest.param("soon", 0, id="a word"),
        pytest.param("9" * 5000, 0, id="more digits than Python reads"),
        pytest.param("Wed, 21 Oct 2015 07:28:00 GMT", 0, id="a date in the past"),
        pytest.param("Wed, 99 Oct 99999 07:28:00 GMT", 0, id="no date"),
    ],
)
def test_seconds_of_a_header(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


def test_seconds_until_a_date() -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=1), usegmt=True)
    assert 50 < seconds_of(date) <= 60


class Refusals:
    """Raises exceptions of keystoneauth1, and then returns."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.pauses = list(errors), list[float]()

    def __call__(self) -> str:
        if self.errors:
            raise self.errors.pop(0)
        return "done"

    def repeated(self, seconds: float = 30.0) -> str:
        policy = RetryPolicy(sleep=self.pauses.append, seconds=seconds)
        return retrying(policy, may_pass, retry_after_of)(self)


def refusal(status: int, retry_after: str = "") -> Exception:
    response = requests.Response()
    response.status_code = status
    response.headers["Retry-After"] = retry_after
    error: Exception = ksa.from_response(response, "GET", "http://nova/flavors")
    return error


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_repeated_after_pauses_that_double_with_a_random_part(status: int) -> None:
    refusals = Refusals(*[refusal(status)] * 3)
    assert refusals.repeated() == "done"
    first, second, third = refusals.pauses
    assert 0.5 <= first <= 1.0 <= second <= 1.5
    assert 2.0 <= third <= 2.5
    assert first != 0.5  # the random part


@pytest.mark.parametrize("status", [400, 401, 404, 409, 501])
def test_not_repeated(status: int) -> None:
    refusals = Refusals(refusal(status))
    with pytest.raises(ksa.HttpError):
        refusals.repeated()
    assert refusals.pauses == []


@pytest.mark.parametrize(
    ("asked", "paused"),
    [("3", 3.0), ("10", 10.0), ("86400", 10.0), (format_datetime(datetime(2100, 1, 1)), 10.0)],
)
def test_the_service_asks_for_a_pause_and_gets_ten_seconds_at_most(
    asked: str, paused: float
) -> None:
    refusals = Refusals(refusal(429, asked))
    assert refusals.repeated() == "done"
    assert refusals.pauses == [paused]


def test_no_attempt_begins_when_the_time_is_over() -> None:
    refusals = Refusals(*[refusal(429, "9")] * 9)
    with pytest.raises(ksa.HttpError):
        refusals.repeated(seconds=8)
    assert refusals.pauses == []


@pytest.mark.parametrize(
    ("content_type", "is_json"),
    [
        pytest.param("", True, id="no header"),
        pytest.param("application/json", True, id="JSON"),
        pytest.param("Application/JSON; charset=UTF-8", True, id="JSON with a charset"),
        pytest.param("text/html", False, id="the page of a proxy"),
        pytest.param("text/plain", False, id="text"),
    ],
)
def test_the_content_type_tells_whether_a_body_is_json(content_type: str, is_json: bool) -> None:
    assert is_json_type(content_type) is is_json
