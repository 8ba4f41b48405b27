"""Answers of Nova that are no flavors; tests/nova has a real Nova."""

from collections.abc import Mapping
from typing import Any

import pytest
from keystoneauth1.exceptions import BadGateway, ClientException, ConnectFailure
from requests import JSONDecodeError

from cpu_tiers.tools.compute_api import ComputeApiUnavailable, read_flavors
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import Services


class Answers:
    """Stands for an adapter: answers each request with the next body."""

    headers: Mapping[str, str] = {"Content-Type": "text/html"}

    def __init__(self, *bodies: object) -> None:
        self.bodies = list(bodies)
        self.paths: list[str] = []

    def get(self, path: str, microversion: str) -> Any:
        assert microversion == "2.61"
        self.paths.append(path)
        if isinstance(self.bodies[0], ClientException):
            raise self.bodies.pop(0)  # type: ignore[misc]  # mypy does not narrow an element
        return self

    def json(self) -> Any:
        body = self.bodies.pop(0)
        if isinstance(body, Exception):
            raise body
        return body


def read(answers: Answers) -> list[str]:
    adapter: Any = answers
    policy = RetryPolicy(sleep=lambda _: None)
    flavors = read_flavors(Services(adapter=lambda _: adapter, retry_policy=policy))
    return [f"{flavor['id']} {flavor['extra_specs']}" for flavor in flavors]


LINKS = {"flavors_links": [{"rel": "next"}]}
ONE, TWO = {"id": "1", "extra_specs": {}}, {"id": "a/b"}


def test_pages_and_extra_specs_by_flavor() -> None:
    specs = {"extra_specs": {"a": "b"}}
    answers = Answers(
        {"flavors": [ONE], **LINKS}, {"flavors": [TWO], **LINKS}, specs, {"flavors": []}
    )
    assert read(answers) == ["1 {}", "a/b {'a': 'b'}"]
    first = "/flavors/detail?is_public=None&limit=1000&sort_key=flavorid"
    assert answers.paths == [
        first,
        f"{first}&marker=1",
        "/flavors/a%2Fb/os-extra_specs",
        f"{first}&marker=a%2Fb",
    ]


def test_an_id_that_no_url_can_have() -> None:
    # found by tests/fuzz: a UnicodeEncodeError
    answers = Answers(
        {"flavors": [{"id": "\ud800"}], **LINKS}, {"extra_specs": {}}, {"flavors": []}
    )
    assert read(answers) == ["\ud800 {}"]
    assert answers.paths[1:] == [
        "/flavors/%3F/os-extra_specs",
        "/flavors/detail?is_public=None&limit=1000&sort_key=flavorid&marker=%3F",
    ]


def test_a_page_that_comes_again_ends_the_list() -> None:
    answers = Answers(*[{"flavors": [ONE], **LINKS}] * 9)
    assert read(answers) == ["1 {}"] * 2


@pytest.mark.parametrize(
    ("bodies", "message"),
    [
        (
            [ConnectFailure("nobody listens")] * 4,
            "nobody listens; check username, password, project_name",
        ),
        ([JSONDecodeError("Expecting value", "<html>", 0)], "Expecting value"),
        ([RecursionError("too deep")], "too deep"),
        ([[]], "not a list of flavors"),
        ([{"flavors": {}}], "not a list of flavors"),
        ([{"flavors": [7]}], "not a list of flavors"),
        ([{"flavors": [{"id": "1", "extra_specs": []}]}], "not a list of flavors"),
    ],
    ids=str,
)
def test_no_flavors(bodies: list[object], message: str) -> None:
    with pytest.raises(ComputeApiUnavailable, match=f"^GET /flavors/detail.*{message}"):
        read(Answers(*bodies))


def test_a_request_without_an_answer_is_repeated() -> None:
    faults = [ConnectFailure("nobody listens"), BadGateway("no answer of Nova")]
    assert read(Answers(*faults, {"flavors": [ONE]})) == ["1 {}"]
