"""The microversion, the retries and the error mapping, with a transport that plays a script."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests
from keystoneauth1 import exceptions as ksa

from cpu_tiers.placement.client import PlacementClient
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
    PlacementVersionTooOld,
)
from cpu_tiers.placement.exchange import Exchange, RetryPolicy


def answer(status: int, body: object, content_type: str = "application/json") -> requests.Response:
    response = requests.Response()
    response.status_code = status
    response.headers["Content-Type"] = content_type
    response._content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return response


def version(maximum: str) -> requests.Response:
    return answer(200, {"versions": [{"id": "v1.0", "max_version": maximum}]})


class Play:
    """Gives the answers of its script one after the other; an exception is raised."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.sent: list[tuple[str, str, Any]] = []
        self.pauses: list[float] = []

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        self.sent.append((method, url, kwargs))
        act = self.script.pop(0)
        if isinstance(act, BaseException):
            raise act
        return act

    def client(self, **retry_policy: Any) -> PlacementClient:
        return PlacementClient(
            self, retry_policy=RetryPolicy(sleep=self.pauses.append, **retry_policy)
        )


@pytest.mark.parametrize(
    ("maximum", "agreed"),
    [
        pytest.param("1.36", (1, 36), id="the oldest that will do"),
        pytest.param("1.38", (1, 38), id="the server's newest"),
        pytest.param("1.39", (1, 39), id="our newest"),
        pytest.param("1.40", (1, 39), id="no newer than we know"),
        pytest.param("2.0", (1, 39), id="nor a new major version"),
    ],
)
def test_microversion(maximum: str, agreed: tuple[int, int]) -> None:
    play = Play(version(maximum), answer(200, {"resource_providers": []}))
    client = play.client()
    assert client.microversion == agreed
    client.find_provider("x")
    headers = play.sent[1][2]["headers"]
    assert headers == {"OpenStack-API-Version": "placement {}.{}".format(*agreed)}


@pytest.mark.parametrize("maximum", ["1.35", "1.30", "1.9", "1.0"])
def test_an_old_server_is_named_and_the_release_that_will_do(maximum: str) -> None:
    with pytest.raises(PlacementVersionTooOld, match=r"1\.36.*2\.0\.0.*Train") as error:
        Play(version(maximum)).client().find_provider("x")
    assert error.value.maximum == maximum
    assert maximum in str(error.value)


@pytest.mark.parametrize(
    "body",
    [
        {"versions": []},
        {"versions": [{"id": "v1"}]},
        {"versions": [{"max_version": "new"}]},
        {"versions": [7]},
        {"versions": {}},
        {},
    ],
)
def test_another_service_is_no_placement(body: object) -> None:
    with pytest.raises(PlacementAnswerInvalid, match="GET /"):
        Play(answer(200, body)).client().find_provider("x")


def test_the_pauses_double_and_the_fourth_attempt_is_the_last() -> None:
    play = Play(*[ksa.ConnectFailure("gone")] * 9)
    with pytest.raises(PlacementUnavailable):
        play.client().find_provider("x")
    assert play.pauses == [0.5, 1.0, 2.0]
    assert len(play.sent) == 4


def test_no_attempt_begins_when_the_time_is_over() -> None:
    play = Play(*[ksa.ConnectFailure("gone")] * 9)
    with pytest.raises(PlacementUnavailable):
        play.client(seconds=0.75).find_provider("x")
    assert play.pauses == [0.5]  # the next pause, 1 s, would end after 0.75 s


def test_keystoneauth_does_not_try_again_on_its_own() -> None:
    play = Play(version("1.39"))
    assert play.client().microversion == (1, 39)
    kwargs = play.sent[0][2]
    assert (kwargs["connect_retries"], kwargs["status_code_retries"]) == (0, 0)


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
        pytest.param(ksa.InternalServerError, PlacementRefused, id="500 of Keystone"),
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
        pytest.param(500, UNDEFINED, PlacementRefused, id="500"),
        pytest.param(502, b"<html>", PlacementRefused, id="502"),
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


@pytest.mark.parametrize("body", [b"", b"<html>", b"{", b"\xff\xfe\xfa", b"[" * 100_000])
def test_what_is_no_json_says_so(body: bytes) -> None:
    with pytest.raises(PlacementAnswerInvalid, match="not valid JSON"):
        Play(answer(200, body)).client().find_provider("x")


def test_a_bool_is_no_number() -> None:
    body = {"inventories": {}, "resource_provider_generation": True}
    play = Play(version("1.39"), answer(200, body))
    with pytest.raises(
        PlacementAnswerInvalid, match="'resource_provider_generation' is not of type int"
    ):
        play.client().inventories("x")


def test_below_1_38_there_is_no_consumer_type() -> None:
    consumer = {
        "allocations": {"rp": {"resources": {"VCPU": 1}}},
        "consumer_generation": 3,
        "project_id": "p",
        "user_id": "u",
    }
    play = Play(version("1.37"), answer(200, consumer), answer(204, b""))
    client = play.client()
    client.set_consumers(client.consumer("x"))
    assert play.sent[2][2]["json"] == {"x": consumer}


def test_a_type_that_placement_does_not_know_is_not_sent_back() -> None:
    consumer = {
        "allocations": {"rp": {"resources": {"VCPU": 1}}},
        "consumer_generation": 3,
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "unknown",  # from before 1.38; Placement refuses it in a request
    }
    play = Play(version("1.39"), answer(200, consumer))
    assert play.client().consumer("x").consumer_type == "INSTANCE"
