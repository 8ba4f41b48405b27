"""The microversion and the retries, with a transport that plays a script."""

import pytest
import requests
from keystoneauth1 import exceptions as ksa

from cpu_tiers.placement.errors import (
    PlacementAnswerCutOff,
    PlacementAnswerInvalid,
    PlacementRefused,
    PlacementUnavailable,
    PlacementVersionTooOld,
)
from tests.unit.placement.scripted import Play, answer, version


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


def test_the_fourth_attempt_is_the_last() -> None:
    play = Play(*[ksa.ConnectFailure("gone")] * 9)
    with pytest.raises(PlacementUnavailable):
        play.client().find_provider("x")
    assert len(play.pauses) == 3
    assert len(play.sent) == 4


def test_placement_asks_for_a_pause() -> None:
    busy = answer(429, b"")
    busy.headers["Retry-After"] = "7"
    play = Play(version("1.39"), busy, answer(201, b""))
    play.client().create_trait("CUSTOM_A")
    assert play.pauses == [7.0]


def test_keystone_asks_for_a_pause() -> None:
    busy = answer(429, b"")
    busy.headers["Retry-After"] = "6"
    play = Play(ksa.from_response(busy, "POST", "http://keystone/v3"), version("1.39"))
    assert play.client().microversion == (1, 39)
    assert play.pauses == [6.0]


@pytest.mark.parametrize(("times", "resent"), [(0, False), (1, True)])
def test_an_error_says_whether_the_request_was_repeated(times: int, resent: bool) -> None:
    play = Play(version("1.39"), *[answer(500, b"")] * times, answer(404, b""))
    with pytest.raises(PlacementRefused) as error:
        play.client().create_trait("CUSTOM_A")
    assert error.value.resent is resent


@pytest.mark.parametrize(
    "cut_off",
    [
        pytest.param(answer(200, b'{"resource_prov'), id="half"),
        pytest.param(answer(200, b""), id="empty"),
        pytest.param(answer(200, b"", content_type=""), id="empty, no content type"),
    ],
)
def test_a_read_that_is_cut_off_is_repeated(cut_off: requests.Response) -> None:
    play = Play(cut_off, version("1.39"), cut_off, answer(200, {"resource_providers": []}))
    assert play.client().find_provider("x") is None
    assert len(play.pauses) == 2
    play = Play(version("1.39"), *[cut_off] * 9)
    with pytest.raises(PlacementAnswerCutOff, match="not valid JSON"):
        play.client().find_provider("x")
    assert len(play.sent) == 1 + 4


def test_a_write_with_a_cut_off_answer_is_not_repeated() -> None:
    play = Play(version("1.39"), *[answer(200, b'{"uuid')] * 9)
    with pytest.raises(PlacementAnswerCutOff, match="not valid JSON"):
        play.client().create_provider("x")
    assert len(play.sent) == 1 + 1


@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param(answer(200, b"<html>", "text/html"), id="HTML"),
        pytest.param(answer(200, b"", "text/html"), id="empty HTML"),
        pytest.param(answer(200, [1]), id="JSON of another shape"),
    ],
)
def test_an_answer_of_another_service_is_not_asked_for_again(foreign: requests.Response) -> None:
    play = Play(version("1.39"), *[foreign] * 9)
    with pytest.raises(PlacementAnswerInvalid):
        play.client().find_provider("x")
    assert len(play.sent) == 1 + 1


def test_keystoneauth_does_not_repeat_requests() -> None:
    play = Play(version("1.39"))
    assert play.client().microversion == (1, 39)
    kwargs = play.sent[0][2]
    assert (kwargs["connect_retries"], kwargs["status_code_retries"]) == (0, 0)
