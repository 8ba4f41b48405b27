"""Objects by id and by name, with the names that exist twice or not at all."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.compute_api import (
    IMAGE,
    PORT,
    SERVER,
    ComputeApiUnavailable,
    ObjectKind,
    find,
)
from tests.unit.compute_api.catalog import Catalog

ONE, TWO = {"id": "1", "name": "web"}, {"id": "2", "name": "web"}
OTHER = {"id": "3", "name": "web-2"}
BY_PATTERN = "/servers/detail?all_tenants=1&name=%5Eweb%24"


def found(
    kind: ObjectKind, name: str, answers: dict[tuple[str, str], object]
) -> tuple[object, list[str]]:
    catalog = Catalog(answers)
    return find(catalog.services(), kind, name, "--it"), catalog.paths


@pytest.mark.parametrize(
    ("kind", "service", "path", "answer"),
    [
        (SERVER, "compute", "/servers/1", {"server": ONE}),
        (IMAGE, "image", "/v2/images/1", ONE),
        (PORT, "network", "/v2.0/ports/1", {"port": ONE}),
    ],
)
def test_by_id(kind: ObjectKind, service: str, path: str, answer: object) -> None:
    assert found(kind, "1", {(service, path): answer}) == (ONE, [path])


@pytest.mark.parametrize(
    ("kind", "service", "path", "key"),
    [
        (SERVER, "compute", BY_PATTERN, "servers"),
        (IMAGE, "image", "/v2/images?name=web", "images"),
        (PORT, "network", "/v2.0/ports?name=web", "ports"),
    ],
)
def test_by_name(kind: ObjectKind, service: str, path: str, key: str) -> None:
    answer = {key: [OTHER, ONE]}
    assert found(kind, "web", {(service, path): answer})[0] == ONE
    with pytest.raises(InvalidInput, match=r"--it: web: .* no .* with this name or id; openstack"):
        found(kind, "web", {(service, path): {key: [OTHER]}})
    with pytest.raises(InvalidInput, match=r"has 2 .* with this name; give one of the ids: 1, 2"):
        found(kind, "web", {(service, path): {key: [ONE, TWO]}})
    with pytest.raises(ComputeApiUnavailable, match="cannot be asked for"):
        found(kind, "web", {})  # also the list is missing: the endpoint is wrong


@pytest.mark.parametrize(
    ("name", "paths"),
    [
        pytest.param("..", ["/v2.0/ports?name=.."], id="no other path"),
        pytest.param("", ["/v2.0/ports?name="], id="not the list of all"),
        pytest.param(
            "a/b?c", ["/v2.0/ports/a%2Fb%3Fc", "/v2.0/ports?name=a%2Fb%3Fc"], id="quoted"
        ),
        pytest.param("\udcff", ["/v2.0/ports/%3F", "/v2.0/ports?name=%3F"], id="no UTF-8"),
    ],
)
def test_odd_names(name: str, paths: list[str]) -> None:
    port = {"id": "1", "name": name}
    assert found(PORT, name, {("network", paths[-1]): {"ports": [port]}}) == (port, paths)


def test_the_name_of_a_server_is_no_pattern() -> None:
    path = r"/servers/detail?all_tenants=1&name=%5Ea%5C.b%5C%2A%24"
    server = {"id": "1", "name": "a.b*"}
    assert found(SERVER, "a.b*", {("compute", path): {"servers": [server]}})[0] == server


def test_a_server_with_the_name_of_the_list() -> None:
    path = "/servers/detail?all_tenants=1&name=%5Edetail%24"
    server = {"id": "1", "name": "detail"}
    answers: dict[tuple[str, str], object] = {
        ("compute", "/servers/detail"): {"servers": []},
        ("compute", path): {"servers": [server]},
    }
    assert found(SERVER, "detail", answers) == (server, [path])


@pytest.mark.parametrize(
    ("path", "answer", "message"),
    [
        (BY_PATTERN, {"servers": [{"name": "web"}]}, "is not a list of servers"),
        (BY_PATTERN, {"servers": [ONE, "no object"]}, "is not a list of servers"),
        ("/servers/web", {"server": {"name": "web"}}, "is not a server"),
    ],
)
def test_objects_without_an_id(path: str, answer: object, message: str) -> None:
    with pytest.raises(ComputeApiUnavailable, match=f"the answer {message}; check the endpoint"):
        found(SERVER, "web", {("compute", path): answer})
