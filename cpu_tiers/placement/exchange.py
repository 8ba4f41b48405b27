"""Requests to Placement: the microversion, patience, and typed errors.

The transport is a keystoneauth1 ``Adapter`` that is given: whatever has its
``request`` method will do, which is the seam for tests and for the embedded
Placement.
"""

import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Protocol

import tenacity

from cpu_tiers.placement.error_mapping import no_answer, refusal
from cpu_tiers.placement.errors import (
    PlacementRefused,
    PlacementUnavailable,
    PlacementVersionTooOld,
)
from cpu_tiers.placement.response import PlacementResponse

OLDEST = (1, 36)
"""``same_subtree`` and groups without resources."""

NEWEST = (1, 39)
"""The newest that this client was written for."""

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


class Transport(Protocol):
    """What is used of ``keystoneauth1.adapter.Adapter``."""

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Send one request and return a ``requests.Response``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to try again while there is no answer.

    :param attempts: requests in all.
    :param seconds: after so long no further attempt begins.
    :param first_pause: seconds before the second attempt, doubled for each
        further one.
    """

    attempts: int = 4
    seconds: float = 30.0
    first_pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep


class Exchange:
    """Sends requests of one microversion and returns answers below 400."""

    def __init__(self, transport: Transport, patience: Patience) -> None:
        """Keep both; nothing is sent yet."""
        self._transport = transport
        self._patiently = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(PlacementUnavailable),
            stop=tenacity.stop_after_attempt(patience.attempts)
            | tenacity.stop_before_delay(patience.seconds),
            wait=tenacity.wait_exponential(multiplier=patience.first_pause),
            sleep=patience.sleep,
            reraise=True,
        )
        self._microversion: tuple[int, int] | None = None

    @property
    def microversion(self) -> tuple[int, int]:
        """Return the microversion in use; the first call asks the server.

        :raises PlacementVersionTooOld: the server has no 1.36.
        """
        if self._microversion is None:
            self._microversion = _agree(self._patiently(self._send, "GET", "/", {}, None, ()))
        return self._microversion

    def must_have(self, microversion: tuple[int, int]) -> None:
        """Make sure that the microversion in use is this one or newer.

        :raises PlacementVersionTooOld: it is older.
        """
        if self.microversion < microversion:
            maximum, needed = (f"{a}.{b}" for a, b in (self.microversion, microversion))
            raise PlacementVersionTooOld(
                f"this Placement's newest microversion is {maximum}, what is asked for needs"
                f" {needed} (one of several traits): upgrade it to openstack-placement 7.0.0"
                " (OpenStack Yoga) or newer",
                maximum=maximum,
            )

    def request(
        self, method: str, path: str, *, json: object = None, expected: Collection[int] = ()
    ) -> PlacementResponse:
        """Send a request, again while there is no answer.

        :param expected: statuses of 400 or more that are no error here.
        :raises PlacementError: the leaf that tells what went wrong.
        """
        headers = {"OpenStack-API-Version": "placement {}.{}".format(*self.microversion)}
        try:
            return self._patiently(self._send, method, path, headers, json, expected)
        except PlacementRefused as error:
            error.resent = self._patiently.statistics["attempt_number"] > 1
            raise

    def _send(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        json: object,
        expected: Collection[int],
    ) -> PlacementResponse:
        body = {} if json is None else {"json": json}
        try:
            response = self._transport.request(
                path,
                method,
                headers=headers,
                raise_exc=False,
                connect_retries=0,  # or they would multiply with ours
                status_code_retries=0,
                **body,
            )
        except Exception as error:
            # Not their own errors alone: without a password keystoneauth1
            # raises a bare Exception, without the CA file requests an OSError.
            raise no_answer(error, method, path) from error
        answer = PlacementResponse(
            method=method,
            path=path,
            status=response.status_code,
            content_type=response.headers.get("Content-Type", ""),
            content=response.content,
        )
        if answer.status >= 400 and answer.status not in expected:
            raise refusal(answer)
        return answer


def _agree(answer: PlacementResponse) -> tuple[int, int]:
    """Return the newest microversion that both sides speak."""
    offered = [
        answer.read(version, "max_version", str)
        for version in answer.read(answer.body(), "versions", list)
    ]
    numbers = [_VERSION.fullmatch(text) for text in offered]
    newest = max(((int(n[1]), int(n[2])) for n in numbers if n), default=None)
    if newest is None:
        raise answer.invalid(f"JSON without a microversion, max_version is {offered}")
    if newest < OLDEST:
        maximum = "{}.{}".format(*newest)
        raise PlacementVersionTooOld(
            f"this Placement's newest microversion is {maximum}, cpu-tiers needs 1.36:"
            " upgrade it to openstack-placement 2.0.0 (OpenStack Train) or newer",
            maximum=maximum,
        )
    return min(newest, NEWEST)
