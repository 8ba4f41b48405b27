"""The microversion and the retries, with a transport that plays a script."""

import pytest
from keystoneauth1 import exceptions as ksa

from cpu_tiers.placement.errors import (
    PlacementAnswerInvalid,
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
