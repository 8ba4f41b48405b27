"""Mapping a failed request to a subclass of ``PlacementError``.

A request fails in two ways. Either keystoneauth1 or requests raises an exception
instead of a response, or the response has a status of 400 or more. The body of an
error may be HTML, because proxies answer in HTML.
"""

from collections.abc import Mapping
from typing import Any

from keystoneauth1 import exceptions as ksa

from cpu_tiers.errors import printable
from cpu_tiers.placement.errors import (
    DuplicateName,
    GenerationConflict,
    InsufficientCapacity,
    InventoryInUse,
    NotAuthorised,
    PlacementAnswerInvalid,
    PlacementError,
    PlacementMisconfigured,
    PlacementRefused,
    PlacementUnavailable,
    ProviderInUse,
)
from cpu_tiers.tools.http.retries import REPEATED_STATUSES, may_pass, retry_after_of
from cpu_tiers.tools.http.services import NOVA_CONF, RedirectRefused, Settings, tls_fault
from cpu_tiers.tools.placement.response import PlacementResponse

_BY_CODE: Mapping[str, type[PlacementRefused]] = {
    "placement.concurrent_update": GenerationConflict,
    "placement.inventory.inuse": InventoryInUse,
    "placement.duplicate_name": DuplicateName,
    "placement.resource_provider.inuse": ProviderInUse,
}


def error_without_response(
    error: Exception, method: str, path: str, settings: Settings = NOVA_CONF
) -> PlacementError:
    """Return the error for an exception that was raised instead of a response.

    :param settings: where the settings of the session are, for the advice in the error.
    """
    if isinstance(error, ksa.DiscoveryFailure) and isinstance(
        error.__context__, ksa.ClientException
    ):
        # DiscoveryFailure only says that there is no endpoint; its context says why.
        return error_without_response(error.__context__, method, path, settings)
    if isinstance(error, ksa.HttpError):
        return _identity_refused(error, method, path, settings)
    if isinstance(error, ksa.InvalidResponse):
        return PlacementAnswerInvalid(
            f"{method} {path}: the answer of Keystone is not a token: {error}",
            method=method,
            path=path,
        )
    if may_pass(error):
        return PlacementUnavailable(
            f"{method} {path}: no answer: {printable(str(error)[:1000])}{_fate(method)}",
            method=method,
            path=path,
        )
    if isinstance(original := getattr(error, "original", None), RedirectRefused):
        error = original  # without the words of keystoneauth1
    reason = tls_fault(error, settings) or f"{error}; check {settings.connection}"
    return PlacementMisconfigured(
        f"{method} {path}: cannot be sent: {reason}",
        method=method,
        path=path,
    )


def _identity_refused(error: Any, method: str, path: str, settings: Settings) -> PlacementError:
    """Return the error for an ``HttpError`` of keystoneauth1.

    Only requests to Keystone raise it, because the requests to Placement are sent
    with ``raise_exc=False``.
    """
    status = int(error.http_status)
    kind: type[PlacementError] = PlacementMisconfigured
    settings_to_check = settings.connection
    if status in {401, 403}:
        kind, settings_to_check = NotAuthorised, settings.credentials
    elif status in REPEATED_STATUSES:
        kind = PlacementUnavailable
    elif status >= 500:
        kind = PlacementRefused
    message = f"{method} {path}: Keystone gave no token: {error}; check {settings_to_check}"
    refusal = kind(message, method=method, path=path, status=status)
    if isinstance(refusal, PlacementUnavailable):
        refusal.retry_after = retry_after_of(error)
    return refusal


def error_of_response(
    response: PlacementResponse, settings: Settings = NOVA_CONF
) -> PlacementError:
    """Return the error for a response with a status of 400 or more.

    :param settings: where the settings of the session are, for the advice in the error.
    """
    details, code = _problems(response)
    kind: type[PlacementError] = _BY_CODE.get(code, PlacementRefused)
    advice = ""
    if response.status in REPEATED_STATUSES:
        kind = PlacementUnavailable
        advice = "" if response.status == 429 else _fate(response.method)
    elif response.status in {401, 403}:
        kind, advice = NotAuthorised, f"; check {settings.credentials}, and their role"
    elif kind is GenerationConflict:
        advice = "; another client writes there at the same time: run the command again"
    elif kind is PlacementRefused and details and _is_an_allocation_conflict(response):
        kind = InsufficientCapacity  # Placement has no error code for "does not fit".
    reason = (
        printable("; ".join(details))
        or f"the body is {response.content_type or 'empty'}, not an error of Placement"
    )
    error = kind(
        f"{response.method} {response.path}: HTTP {response.status}: {reason}{advice}",
        method=response.method,
        path=response.path,
        status=response.status,
        details=details,
    )
    if isinstance(error, PlacementUnavailable):
        error.retry_after = response.retry_after
    return error


def _is_an_allocation_conflict(response: PlacementResponse) -> bool:
    return response.status == 409 and response.path.split("/")[1] in {"allocations", "reshaper"}


def _fate(method: str) -> str:
    """Return the warning that a write without an answer may have been carried out."""
    return "" if method == "GET" else f"; it is unknown whether the {method} was carried out"


def _problems(response: PlacementResponse) -> tuple[tuple[str, ...], str]:
    """Return the details of all ``errors`` in the body, and the code of the first error."""
    try:
        errors = response.read(response.body(), "errors", list)
        details = (" ".join(response.read(error, "detail", str).split()) for error in errors)
        return tuple(details), str(errors[0].get("code", "")) if errors else ""
    except PlacementAnswerInvalid:
        return (), ""
