"""Sending requests to Placement: microversion, retries and typed errors.

The transport is a keystoneauth1 ``Adapter``, or another object with its
``request`` method. Tests use such an object to play faults.
"""

import re
from collections.abc import Collection
from typing import Any, Protocol

from cpu_tiers.placement.errors import (
    PlacementAnswerCutOff,
    PlacementError,
    PlacementUnavailable,
    PlacementVersionTooOld,
)
from cpu_tiers.tools.http.retries import RetryPolicy, retrying
from cpu_tiers.tools.http.services import NOVA_CONF, Settings
from cpu_tiers.tools.placement.error_mapping import error_of_response, error_without_response
from cpu_tiers.tools.placement.response import PlacementResponse
from cpu_tiers.tools.placement.share_names import ShareNames

OLDEST = (1, 36)
"""The oldest usable microversion: it has ``same_subtree`` and request groups without resources."""

NEWEST = (1, 39)
"""The newest microversion that this client was written for."""

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)


class Transport(Protocol):
    """The methods of ``keystoneauth1.adapter.Adapter`` in use."""

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Send one request and return a ``requests.Response``."""


class Exchange:
    """Sends requests with one microversion, and turns each failure into a typed error."""

    def __init__(
        self, transport: Transport, retry_policy: RetryPolicy, settings: Settings = NOVA_CONF
    ) -> None:
        """Keep the transport; nothing is sent yet."""
        self._transport = transport
        self._settings = settings
        self.share_names = ShareNames()
        self._retrying = retrying(
            retry_policy,
            _may_pass,
            lambda error: error.retry_after if isinstance(error, PlacementUnavailable) else "",
        )
        self._microversion: tuple[int, int] | None = None

    @property
    def microversion(self) -> tuple[int, int]:
        """Return the microversion in use; the first call asks the server for its versions.

        :raises PlacementVersionTooOld: the server lacks microversion 1.36.
        """
        if self._microversion is None:
            self._microversion = _negotiate(self._retrying(self._send, "GET", "/", {}, None, ()))
        return self._microversion

    def require_microversion(self, microversion: tuple[int, int]) -> None:
        """Check that the microversion in use is ``microversion`` or newer.

        :raises PlacementVersionTooOld: the server only has older microversions.
        """
        if self.microversion < microversion:
            maximum, needed = (f"{a}.{b}" for a, b in (self.microversion, microversion))
            raise PlacementVersionTooOld(
                f"the newest microversion of this Placement is {maximum}, but a query for one of"
                f" several traits (in:…) needs {needed}: upgrade Placement to"
                " openstack-placement 7.0.0 (OpenStack Yoga) or newer",
                maximum=maximum,
            )

    def request(
        self,
        method: str,
        path: str,
        *,
        json: object = None,
        expected: Collection[int] = (),
        is_repeated: bool = True,
    ) -> PlacementResponse:
        """Send a request, with repetitions while Placement is unavailable.

        Most writes are repeated as reads are: Placement carries out a repeated write either not
        at all, or with the same result (decision D91). A read is repeated also if the body of
        the response is cut off.

        :param expected: statuses of 400 or more to return instead of raising an error.
        :param is_repeated: whether the request is sent again if its answer is lost. Otherwise
            ``PlacementUnavailable`` has ``needs_read``.
        :raises PlacementError: the subclass tells the kind of failure.
        """
        headers = {"OpenStack-API-Version": "placement {}.{}".format(*self.microversion)}
        if not is_repeated:
            try:
                return self._send(method, path, headers, json, expected)
            except PlacementUnavailable as error:
                error.needs_read = True
                raise
        try:
            return self._retrying(self._send, method, path, headers, json, expected)
        except PlacementError as error:
            # The first attempt may have been carried out although its answer was lost. The
            # caller must know, because then the error can be about the repeated attempt.
            error.resent = self._retrying.statistics["attempt_number"] > 1
            raise

    def _send(
        self,
        method: str,
        path: str,
        headers: dict[str, str],
        json: object,
        expected: Collection[int],
    ) -> PlacementResponse:
        body = {} if json is None else {"json": self.share_names.written(path, json)}
        try:
            http_response = self._transport.request(
                path,
                method,
                headers=headers,
                raise_exc=False,
                # keystoneauth1 would repeat each of our attempts so many times.
                connect_retries=0,
                status_code_retries=0,
                **body,
            )
        except Exception as error:
            # Any exception, because not all failures have a class of keystoneauth1 or
            # requests: without a password keystoneauth1 raises a bare Exception, and
            # without the CA file requests raises an OSError.
            raise error_without_response(error, method, path, self._settings) from error
        response = PlacementResponse(
            method=method,
            path=path,
            status=http_response.status_code,
            content_type=http_response.headers.get("Content-Type", ""),
            retry_after=http_response.headers.get("Retry-After", ""),
            content=self.share_names.read(path, http_response.content),
        )
        if response.status >= 400 and response.status not in expected:
            raise error_of_response(response, self._settings)
        if method == "GET":
            response.body()  # An error here is within the repetitions.
        return response


def _may_pass(error: BaseException) -> bool:
    """Tell whether a repeated request may succeed."""
    if isinstance(error, PlacementAnswerCutOff):
        return error.method == "GET"
    return isinstance(error, PlacementUnavailable)


def _negotiate(response: PlacementResponse) -> tuple[int, int]:
    """Return the newest microversion that both the server and this client support."""
    offered = [
        response.read(version, "max_version", str)
        for version in response.read(response.body(), "versions", list)
    ]
    numbers = [_VERSION.fullmatch(text) for text in offered]
    newest = max(((int(n[1]), int(n[2])) for n in numbers if n), default=None)
    if newest is None:
        raise response.invalid(f"JSON without a microversion: max_version is {offered}")
    if newest < OLDEST:
        maximum = "{}.{}".format(*newest)
        raise PlacementVersionTooOld(
            f"the newest microversion of this Placement is {maximum}, but cpu-tiers needs 1.36:"
            " upgrade Placement to openstack-placement 2.0.0 (OpenStack Train) or newer",
            maximum=maximum,
        )
    return min(newest, NEWEST)
