"""When a request is repeated, and how long the pause before the repetition is.

keystoneauth1 repeats requests too, but waits as long as a ``Retry-After`` header says, for days if
need be, and does not understand a date there.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cpu_tiers.tools.http.bounds import bound_fault

if TYPE_CHECKING:
    import tenacity

REPEATED_STATUSES = frozenset({429, 500, 502, 503, 504})
"""The statuses after which a repeated request may succeed.

429: too many requests. 500: Placement answers so after a deadlock of its database. 502, 503 and
504: a proxy has no answer of the service, or the service has no answer of its database.
"""


def is_json_type(content_type: str) -> bool:
    """Tell whether a body is meant to be JSON, by its content type, which may be missing.

    If such a body is not JSON, the end of the body was lost on the way, or the whole body. A
    repeated GET may get all of it. A body with another content type, such as the HTML of a proxy,
    comes again.
    """
    return not content_type or content_type.lower().startswith("application/json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """How often and how long to repeat a request, or an operation of several requests.

    :param attempts: the maximum number of attempts of a request, including the first.
    :param seconds: no attempt begins later than so many seconds after the first.
    :param first_pause: the shortest pause before the second attempt, in seconds. It doubles
        before each further attempt. Up to ``first_pause`` seconds are added at random, so that
        clients that failed together do not return together.
    :param longest_pause: the longest pause in seconds, even if the service asks for a longer one.
    :param conflict_attempts: the same number for what conflicts with writes of other clients.
    :param conflict_pause: the longest pause after the first conflict, in seconds. It doubles after
        each further conflict, up to a second; each pause is drawn at random between 0 and it.
    """

    attempts: int = 4
    seconds: float = 30.0
    first_pause: float = 0.5
    longest_pause: float = 10.0
    conflict_attempts: int = 20
    conflict_pause: float = 0.05
    sleep: Callable[[float], None] = time.sleep


def retrying(
    policy: RetryPolicy,
    is_repeated: Callable[[BaseException], bool],
    retry_after: Callable[[BaseException], str],
) -> "tenacity.Retrying":
    """Return an object that calls a function again while it raises certain exceptions.

    :param is_repeated: tells whether to call the function again after an exception.
    :param retry_after: returns the header ``Retry-After`` of the response of an exception, if any.
    """
    import tenacity

    return tenacity.Retrying(
        retry=tenacity.retry_if_exception(is_repeated),
        stop=tenacity.stop_after_attempt(policy.attempts)
        | tenacity.stop_before_delay(policy.seconds),
        wait=pauses(policy, retry_after),
        sleep=policy.sleep,
        reraise=True,
    )


def pauses(
    policy: RetryPolicy, retry_after: Callable[[BaseException], str]
) -> "Callable[[tenacity.RetryCallState], float]":
    """Return the function that computes the pause before a repetition, in seconds."""
    import tenacity

    pause = tenacity.wait_exponential(multiplier=policy.first_pause) + tenacity.wait_random(
        0, policy.first_pause
    )

    def wait(state: "tenacity.RetryCallState") -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = seconds_of(retry_after(error)) if error else 0.0
        return min(max(pause(state), asked), policy.longest_pause)

    return wait


def seconds_of(retry_after: str) -> float:
    """Return the seconds in a header ``Retry-After``: a number, or a date that is not past."""
    from urllib3.exceptions import HTTPError
    from urllib3.util import Retry

    try:
        return Retry().parse_retry_after(retry_after)
    except (HTTPError, ValueError, OverflowError):
        return 0.0


def may_pass(error: BaseException) -> bool:
    """Tell whether a repeated request may succeed after an exception of keystoneauth1."""
    from keystoneauth1 import exceptions as ksa
    from requests.exceptions import RequestException

    if bound_fault(error):
        return False
    if isinstance(error, ksa.HttpError):
        return error.http_status in REPEATED_STATUSES
    if isinstance(error, ksa.UnknownConnectionError):
        # The errors of requests about a malformed URL are subclasses of ValueError. A
        # repetition cannot help there; the configuration is wrong.
        return not isinstance(error.original, ValueError)
    if isinstance(error, ksa.ConnectionError):
        return not isinstance(error, ksa.SSLError)
    return isinstance(error, RequestException) and not isinstance(error, ValueError)


def retry_after_of(error: BaseException) -> str:
    """Return the header ``Retry-After`` of an exception of keystoneauth1, or an empty text."""
    response = getattr(error, "response", None)
    return str(response.headers.get("Retry-After", "")) if response is not None else ""
