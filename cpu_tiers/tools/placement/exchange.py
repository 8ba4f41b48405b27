"""Sending requests to Placement: microversion, retries and typed errors.

A request fails in two ways. Either keystoneauth1 or requests raises an exception instead of a
response, or the response has a status of 400 or more. The body of an error may be HTML, because
proxies answer in HTML.
"""

import re
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Protocol

from cpu_tiers.errors import printable
from cpu_tiers.placement import errors
from cpu_tiers.tools.http import retries
from cpu_tiers.tools.http.bounds import bound_fault
from cpu_tiers.tools.http.retries import REPEATED_STATUSES, RetryPolicy, may_pass, retry_after_of
from cpu_tiers.tools.http.services import NOVA_CONF, Settings, tls_fault
from cpu_tiers.tools.placement.response import PlacementResponse

OLDEST = (1, 36)
"""The oldest usable microversion: it has ``same_subtree`` and request groups without resources."""

NEWEST = (1, 39)
"""The newest microversion that this client was written for."""

_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})", re.ASCII)

_BY_CODE: Mapping[str, type[errors.PlacementRefused]] = {
    "placement.concurrent_update": errors.GenerationConflict,
    "placement.inventory.inuse": errors.InventoryInUse,
    "placement.duplicate_name": errors.DuplicateName,
    "placement.resource_provider.inuse": errors.ProviderInUse,
}


class Transport(Protocol):
    """The methods of ``keystoneauth1.adapter.Adapter`` in use."""

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Send one request and return a ``requests.Response``."""


class Exchange:
    """Sends requests with one microversion, and turns each failure into a typed error."""

    def __init__(
        self, transport: Transport, retry_policy: RetryPolicy, settings: Settings = NOVA_CONF
    ) -> None:
        self._transport = transport
        self._settings = settings
        self._retrying = retries.retrying(
            retry_policy, _may_pass, lambda error: getattr(error, "retry_after", "")
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
            raise errors.PlacementVersionTooOld(
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
        send = partial(self._send, method, path, headers, json, expected)
        try:
            return self._retrying(send) if is_repeated else send()
        except errors.PlacementError as error:
            if is_repeated:
                # The first attempt may have been carried out although its answer was lost. The
                # caller must know, because then the error can be about the repeated attempt.
                error.resent = self._retrying.statistics["attempt_number"] > 1
            elif isinstance(error, errors.PlacementUnavailable):
                error.needs_read = True
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
            refusal = error_without_response(error, f"{method} {path}", self._settings)
            refusal.method, refusal.path = method, path
            raise refusal from error
        response = PlacementResponse(
            method=method,
            path=path,
            status=http_response.status_code,
            content_type=http_response.headers.get("Content-Type", ""),
            retry_after=http_response.headers.get("Retry-After", ""),
            content=http_response.content,
        )
        if response.status >= 400 and response.status not in expected:
            raise error_of_response(response, self._settings)
        if method == "GET":
            response.body  # noqa: B018  # an error here is within the repetitions.
        return response


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, errors.PlacementAnswerCutOff):
        return error.method == "GET"
    return isinstance(error, errors.PlacementUnavailable)


def _negotiate(response: PlacementResponse) -> tuple[int, int]:
    offered = [
        response.read(version, "max_version", str)
        for version in response.read(response.body, "versions", list)
    ]
    numbers = [_VERSION.fullmatch(text) for text in offered]
    newest = max(((int(n[1]), int(n[2])) for n in numbers if n), default=None)
    if newest is None:
        raise response.invalid(f"JSON without a microversion: max_version is {offered}")
    if newest < OLDEST:
        maximum = "{}.{}".format(*newest)
        raise errors.PlacementVersionTooOld(
            f"the newest microversion of this Placement is {maximum}, but cpu-tiers needs 1.36:"
            " upgrade Placement to openstack-placement 2.0.0 (OpenStack Train) or newer",
            maximum=maximum,
        )
    return min(newest, NEWEST)


def error_without_response(
    error: Exception, request: str, settings: Settings
) -> errors.PlacementError:
    """Return the error for an exception that was raised instead of a response.

    :param request: the method and the path.
    :param settings: where the settings of the session are, for the advice in the error.
    """
    from keystoneauth1 import exceptions as ksa

    from cpu_tiers.tools.http.redirects import RedirectRefused

    if fault := bound_fault(error):
        return errors.PlacementAnswerInvalid(f"{request}: {fault}")
    if isinstance(error, ksa.DiscoveryFailure) and isinstance(
        error.__context__, ksa.ClientException
    ):
        # DiscoveryFailure only says that there is no endpoint; its context says why.
        return error_without_response(error.__context__, request, settings)
    if isinstance(error, ksa.HttpError):
        return _identity_refused(error, request, settings)
    if isinstance(error, ksa.InvalidResponse):
        return errors.PlacementAnswerInvalid(
            f"{request}: the answer of Keystone is not a token: {error}"
        )
    if may_pass(error):
        said = printable(str(error)[:1000])
        return errors.PlacementUnavailable(f"{request}: no answer: {said}{_fate(request)}")
    if isinstance(original := getattr(error, "original", None), RedirectRefused):
        error = original  # without the words of keystoneauth1
    reason = tls_fault(error, settings) or f"{error}; check {settings.connection}"
    return errors.PlacementMisconfigured(f"{request}: cannot be sent: {reason}")


def _identity_refused(error: Any, request: str, settings: Settings) -> errors.PlacementError:
    """Return the error for an ``HttpError`` of keystoneauth1.

    Only requests to Keystone raise it, because the requests to Placement are sent
    with ``raise_exc=False``.
    """
    status = int(error.http_status)
    kind: type[errors.PlacementError] = errors.PlacementMisconfigured
    settings_to_check = settings.connection
    if status in {401, 403}:
        kind, settings_to_check = errors.NotAuthorised, settings.credentials
    elif status in REPEATED_STATUSES:
        kind = errors.PlacementUnavailable
    elif status >= 500:
        kind = errors.PlacementRefused
    message = f"{request}: Keystone gave no token: {error}; check {settings_to_check}"
    return kind(message, status=status, retry_after=retry_after_of(error))


def error_of_response(response: PlacementResponse, settings: Settings) -> errors.PlacementError:
    """Return the error for a response with a status of 400 or more."""
    details, code = _problems(response)
    changes_allocations = response.path.split("/")[1] in {"allocations", "reshaper"}
    kind: type[errors.PlacementError] = _BY_CODE.get(code, errors.PlacementRefused)
    advice = ""
    if response.status in REPEATED_STATUSES:
        kind = errors.PlacementUnavailable
        advice = "" if response.status == 429 else _fate(response.method)
    elif response.status in {401, 403}:
        kind, advice = errors.NotAuthorised, f"; check {settings.credentials}, and their role"
    elif kind is errors.GenerationConflict:
        advice = "; another client writes there at the same time: run the command again"
    elif (
        (kind, response.status) == (errors.PlacementRefused, 409)
        and details
        and changes_allocations
    ):
        kind = errors.InsufficientCapacity  # Placement has no error code for "does not fit".
    reason = (
        printable("; ".join(details))
        or f"the body is {response.content_type or 'empty'}, not an error of Placement"
    )
    return kind(
        f"{response.method} {response.path}: HTTP {response.status}: {reason}{advice}",
        method=response.method,
        path=response.path,
        status=response.status,
        details=details,
        retry_after=response.retry_after,
    )


def _fate(request: str) -> str:
    """Return the warning that a write without an answer may have been carried out."""
    method = request.partition(" ")[0]
    return "" if method == "GET" else f"; it is unknown whether the {method} was carried out"


def _problems(response: PlacementResponse) -> tuple[tuple[str, ...], str]:
    try:
        problems = response.read(response.body, "errors", list)
        details = (" ".join(response.read(each, "detail", str).split()) for each in problems)
        return tuple(details), str(problems[0].get("code", "")) if problems else ""
    except errors.PlacementAnswerInvalid:
        return (), ""
