"""From a failed request to one of our errors.

Two sources: an exception of keystoneauth1 or requests, before there was an
answer, and an answer of 400 or more. An error body need not be JSON: proxies
answer in HTML.
"""

from collections.abc import Mapping
from typing import Any

from keystoneauth1 import exceptions as ksa
from requests.exceptions import RequestException

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
from cpu_tiers.placement.response import PlacementResponse

_BY_CODE: Mapping[str, type[PlacementRefused]] = {
    "placement.concurrent_update": GenerationConflict,
    "placement.inventory.inuse": InventoryInUse,
    "placement.duplicate_name": DuplicateName,
    "placement.resource_provider.inuse": ProviderInUse,
}
_NO_ANSWER_YET = frozenset({503, 504})
_CHECK_SECTION = "check auth_url, valid_interfaces, region_name and cafile in [placement]"


def no_answer(error: Exception, method: str, path: str) -> PlacementError:
    """Return our error for an exception that came instead of an answer."""
    if isinstance(error, ksa.DiscoveryFailure) and isinstance(
        error.__context__, ksa.ClientException
    ):
        return no_answer(error.__context__, method, path)  # what discovery stumbled over
    if isinstance(error, ksa.HttpError):
        return _identity_refused(error, method, path)
    if isinstance(error, ksa.InvalidResponse):
        return PlacementAnswerInvalid(
            f"{method} {path}: Keystone's answer is no token: {error}", method=method, path=path
        )
    if _may_pass(error):
        return PlacementUnavailable(
            f"{method} {path}: no answer: {printable(str(error)[:1000])}{_fate(method)}",
            method=method,
            path=path,
        )
    return PlacementMisconfigured(
        f"{method} {path}: cannot be sent: {error}; {_CHECK_SECTION}", method=method, path=path
    )


def _may_pass(error: Exception) -> bool:
    """Tell whether the same request may well succeed in a moment."""
    if isinstance(error, ksa.UnknownConnectionError):
        # requests' errors about a malformed URL are ValueErrors.
        return not isinstance(error.original, ValueError)
    if isinstance(error, ksa.ConnectionError):
        return not isinstance(error, ksa.SSLError)
    return isinstance(error, RequestException) and not isinstance(error, ValueError)


def _identity_refused(error: Any, method: str, path: str) -> PlacementError:
    """Keystone, not Placement: ours are sent with ``raise_exc=False``."""
    status = int(error.http_status)
    kind: type[PlacementError] = PlacementMisconfigured
    if status in {401, 403}:
        kind = NotAuthorised
    elif status in _NO_ANSWER_YET:
        kind = PlacementUnavailable
    elif status >= 500:
        kind = PlacementRefused
    message = f"{method} {path}: Keystone gave no token: {error}; {_CHECK_SECTION}"
    return kind(message, method=method, path=path, status=status)


def refusal(answer: PlacementResponse) -> PlacementError:
    """Return our error for an answer of 400 or more."""
    details, code = _problems(answer)
    kind: type[PlacementError] = _BY_CODE.get(code, PlacementRefused)
    advice = ""
    if answer.status in _NO_ANSWER_YET:
        kind, advice = PlacementUnavailable, _fate(answer.method)
    elif answer.status in {401, 403}:
        kind, advice = NotAuthorised, "; check the credentials in [placement], and their role"
    elif kind is GenerationConflict:
        advice = "; somebody else writes there at the same time: run it again"
    elif kind is PlacementRefused and details and _is_an_allocation_conflict(answer):
        kind = InsufficientCapacity  # Placement has no code of its own for it
    said = (
        printable("; ".join(details))
        or f"the body is {answer.content_type or 'empty'}, not Placement's"
    )
    return kind(
        f"{answer.method} {answer.path}: HTTP {answer.status}: {said}{advice}",
        method=answer.method,
        path=answer.path,
        status=answer.status,
        details=details,
    )


def _is_an_allocation_conflict(answer: PlacementResponse) -> bool:
    return answer.status == 409 and answer.path.split("/")[1] in {"allocations", "reshaper"}


def _fate(method: str) -> str:
    return "" if method == "GET" else f"; whether the {method} was carried out is not known"


def _problems(answer: PlacementResponse) -> tuple[tuple[str, ...], str]:
    """Return the details of Placement's ``errors``, and the first one's code."""
    try:
        errors = answer.read(answer.body(), "errors", list)
        details = (" ".join(answer.read(error, "detail", str).split()) for error in errors)
        return tuple(details), str(errors[0].get("code", "")) if errors else ""
    except PlacementAnswerInvalid:
        return (), ""
