"""Responses of Placement that are not JSON, or JSON of a wrong type."""

import pytest

from cpu_tiers.placement.errors import (
    PlacementAnswerInvalid,
)
from tests.unit.placement.scripted import Play, answer, version


@pytest.mark.parametrize("body", [b'"\\uDfff"', b"", b"<html>", b"{", b"\xff\xfe\xfa"])
def test_a_body_that_is_no_json_is_named(body: bytes) -> None:
    with pytest.raises(PlacementAnswerInvalid, match="not valid JSON"):
        Play(*[answer(200, body)] * 4).client().find_provider("x")


def test_a_bool_is_no_number() -> None:
    body = {"inventories": {}, "resource_provider_generation": True}
    play = Play(version("1.39"), answer(200, body))
    with pytest.raises(
        PlacementAnswerInvalid, match="'resource_provider_generation' is not of type int"
    ):
        play.client().inventories("x")
