"""Every exception and every refusal becomes an error of cpu-tiers."""

from collections.abc import Callable

import pytest
import requests
from keystoneauth1 import exceptions as ksa

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
)
from cpu_tiers.tools.http.redirects import RedirectRefused
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.exchange import Exchange
from tests.unit.placement.scripted import Play, answer, version


def malformed_url() -> Exception:
    return ksa.UnknownConnectionError("no scheme", requests.exceptions.MissingSchema("no scheme"))


def cut_off() -> Exception:
    broken = requests.exceptions.ChunkedEncodingError("cut off")
    return ksa.UnknownConnectionError("cut off", broken)


def discovery(cause: Exception) -> Callable[[], Exception]:
    def fail() -> Exception:
        error = ksa.DiscoveryFailure("no versions")
        error.__context__ = cause
        return error

    return fail


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        pytest.param(ksa.ConnectFailure, PlacementUnavailable, id="no connection"),
        pytest.param(ksa.ConnectTimeout, PlacementUnavailable, id="silence"),
        pytest.param(cut_off, PlacementUnavailable, id="closed within the answer"),
        pytest.param(requests.exceptions.ReadTimeout, PlacementUnavailable, id="requests' own"),
        pytest.param(ksa.ServiceUnavailable, PlacementUnavailable, id="503 of Keystone"),
        pytest.param(ksa.GatewayTimeout, PlacementUnavailable, id="504 of Keystone"),
        pytest.param(discovery(ksa.ConnectFailure("gone")), PlacementUnavailable, id="discovery"),
        pytest.param(discovery(ksa.NotFound()), PlacementMisconfigured, id="discovery: 404"),
        pytest.param(ksa.DiscoveryFailure, PlacementMisconfigured, id="discovery: no reason"),
        pytest.param(malformed_url, PlacementMisconfigured, id="a malformed URL"),
        pytest.param(ksa.SSLError, PlacementMisconfigured, id="a certificate"),
        pytest.param(ksa.EndpointNotFound, PlacementMisconfigured, id="not in the catalog"),
        pytest.param(ksa.EmptyCatalog, PlacementMisconfigured, id="an empty catalog"),
        pytest.param(ksa.MissingAuthPlugin, PlacementMisconfigured, id="no plugin"),
        pytest.param(ksa.BadRequest, PlacementMisconfigured, id="400 of Keystone"),
        pytest.param(ksa.InternalServerError, PlacementUnavailable, id="500 of Keystone"),
        pytest.param(ksa.Unauthorized, NotAuthorised, id="401 of Keystone"),
        pytest.param(ksa.Forbidden, NotAuthorised, id="403 of Keystone"),
        pytest.param(
            lambda: ksa.InvalidResponse(answer(200, b"<html>")), PlacementAnswerInvalid,
            id="no token in Keystone's answer",
        ),
        pytest.param(lambda: OSError("no such CA file"), PlacementMisconfigured, id="no CA file"),
        pytest.param(lambda: Exception("password"), PlacementMisconfigured, id="a bare exception"),
    ],
)  # fmt: skip
def test_every_exception_of_a_lower_library_is_translated(
    make: Callable[[], Exception], kind: type[PlacementError]
) -> None:
    cause = make()
    with pytest.raises(PlacementError) as error:
        Play(*[cause] * 4).client().find_provider("x")
    assert type(error.value) is kind
    assert error.value.__cause__ is cause
    assert (error.value.method, error.value.path) == ("GET", "/")


def problem(code: str, detail: str = "because") -> dict[str, object]:
    return {"errors": [{"status": 0, "title": "No", "detail": detail, "code": code}]}


UNDEFINED = problem("placement.undefined_code")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        pytest.param(400, UNDEFINED, PlacementRefused, id="400"),
        pytest.param(401, b"", NotAuthorised, id="401 with no body"),
        pytest.param(403, UNDEFINED, NotAuthorised, id="403"),
        pytest.param(404, b"<html>", PlacementRefused, id="404 in HTML"),
        pytest.param(409, problem("placement.concurrent_update"), GenerationConflict, id="race"),
        pytest.param(409, problem("placement.inventory.inuse"), InventoryInUse, id="in use"),
        pytest.param(409, problem("placement.duplicate_name"), DuplicateName, id="duplicate"),
        pytest.param(409, UNDEFINED, InsufficientCapacity, id="409 without a code of its own"),
        pytest.param(409, b"<html>", PlacementRefused, id="409 in HTML"),
        pytest.param(429, b"<html>", PlacementUnavailable, id="429"),
        pytest.param(500, UNDEFINED, PlacementUnavailable, id="500"),
        pytest.param(501, b"<html>", PlacementRefused, id="501"),
        pytest.param(502, b"<html>", PlacementUnavailable, id="502"),
        pytest.param(503, b"<html>", PlacementUnavailable, id="503"),
        pytest.param(504, b"<html>", PlacementUnavailable, id="504"),
        pytest.param(400, {"errors": []}, PlacementRefused, id="no errors in the body"),
        pytest.param(400, {"errors": [7]}, PlacementRefused, id="errors of another shape"),
        pytest.param(400, [1], PlacementRefused, id="a list"),
    ],
)
def test_every_refusal_is_an_error(status: int, body: object, kind: type[PlacementError]) -> None:
    play = Play(version("1.39"), *[answer(status, body, "text/html")] * 4)
    exchange = Exchange(play, RetryPolicy(sleep=lambda _: None))
    with pytest.raises(PlacementError, match=f"PUT /allocations/x: HTTP {status}") as error:
        exchange.request("PUT", "/allocations/x")
    assert type(error.value) is kind
    assert error.value.status == status
    if kind is not PlacementUnavailable:
        assert len(play.sent) == 2


def test_placements_own_words_are_kept() -> None:
    said = problem("placement.undefined_code", "No such\n  trait(s): X.")
    with pytest.raises(PlacementRefused, match=r"No such trait\(s\): X\.") as error:
        Play(version("1.39"), answer(400, said)).client().find_provider("x")
    assert error.value.details == ("No such trait(s): X.",)


@pytest.mark.parametrize(("status", "is_unknown"), [(429, False), (500, True), (502, True)])
def test_only_a_429_was_certainly_not_carried_out(status: int, is_unknown: bool) -> None:
    play = Play(version("1.39"), *[answer(status, b"")] * 4)
    with pytest.raises(PlacementUnavailable) as error:
        play.client().create_trait("CUSTOM_A")
    assert ("unknown whether the PUT was carried out" in str(error.value)) is is_unknown


def test_a_redirect_that_is_refused_is_named_without_a_repetition() -> None:
    refused = RedirectRefused("http://a/ redirects to 'http://b/'")
    play = Play(ksa.UnknownConnectionError("Unexpected exception for http://a/", refused))
    with pytest.raises(PlacementMisconfigured, match="sent: http://a/ redirects to 'http://b/'; "):
        play.client().find_provider("x")
