"""A server, its image and its ports, as Nova, Glance and Neutron answer."""

from collections.abc import Mapping

import pytest

from cpu_tiers.tools.compute_api import (
    IN_PROGRESS,
    ComputeApiUnavailable,
    HostAggregate,
    ReadServer,
    read_aggregates,
    read_all_servers,
    read_images,
    read_migrations,
    read_placed_servers,
    read_server,
)
from tests.unit.compute_api.catalog import Catalog

UUID = "5c0b2c1e-0f5a-4a52-9a3f-0c2a3fb4a0a1"
FLAVOR = {"original_name": "gold", "vcpus": 1, "ram": 512, "disk": 1, "extra_specs": {}}
IMAGE = {"id": "i", "name": "cirros", "hw_disk_bus": "scsi"}
SERVER = {"server": {"id": UUID, "name": "web", "flavor": FLAVOR, "image": {"id": "i"}}}
ANSWERS = {
    ("compute", f"/servers/{UUID}"): SERVER,
    ("image", "/v2/images/i"): IMAGE,
    ("network", f"/v2.0/ports?device_id={UUID}"): {"ports": [{"id": "p"}]},
}


def read(
    answers: Mapping[tuple[str, str], object], name: str = UUID
) -> tuple[ReadServer, Catalog]:
    catalog = Catalog(answers)
    return read_server(catalog.services(), name, "--server"), catalog


def test_server_image_and_ports() -> None:
    server, catalog = read(ANSWERS)
    assert server == ReadServer("web", FLAVOR, IMAGE, ({"id": "p"},))
    assert catalog.microversions == ["2.47", None, None]


def test_the_ports_of_a_named_server_are_read_by_the_server_id() -> None:
    by_name = "/servers/detail?all_tenants=1&name=%5Eweb%24"
    answers = {**ANSWERS, ("compute", by_name): {"servers": [SERVER["server"]]}}
    assert read(answers, "web")[0] == read(ANSWERS)[0]


def test_a_server_from_a_volume_has_no_image() -> None:
    of_nova = {"server": {**SERVER["server"], "image": ""}}
    assert read({**ANSWERS, ("compute", f"/servers/{UUID}"): of_nova})[0].image is None


@pytest.mark.parametrize(
    ("key", "answer", "message"),
    [
        (("compute", f"/servers/{UUID}"), {"server": []}, "not a server; .* service compute"),
        (
            ("compute", f"/servers/{UUID}"),
            {"server": {"name": "web"}},
            "not a server; .* service compute",
        ),
        (("image", "/v2/images/i"), [], "not an image; .* service image"),
        (("image", "/v2/images/i"), {"name": "cirros"}, "not an image; .* service image"),
        (("network", f"/v2.0/ports?device_id={UUID}"), {}, "not a list of ports; .* network"),
        (
            ("network", f"/v2.0/ports?device_id={UUID}"),
            {"ports": ["no port"]},
            "not a list of ports; .* network",
        ),
    ],
)
def test_answers_of_another_form(key: tuple[str, str], answer: object, message: str) -> None:
    with pytest.raises(ComputeApiUnavailable, match=message):
        read({**ANSWERS, key: answer})


def test_ports_page_by_page() -> None:
    """Neutron has pages if its option pagination_max_limit is set."""
    first = f"/v2.0/ports?device_id={UUID}"
    pages = {
        ("network", first): {"ports": [{"id": "p"}], "ports_links": [{"rel": "next"}]},
        ("network", f"{first}&marker=p"): {"ports": [{"id": "q"}]},
    }
    assert read({**ANSWERS, **pages})[0].ports == ({"id": "p"}, {"id": "q"})


def test_an_image_that_was_deleted() -> None:
    answers = {key: answer for key, answer in ANSWERS.items() if key[0] != "image"}
    with pytest.raises(ComputeApiUnavailable, match="GET /v2/images/i: Glance cannot be asked"):
        read(answers)


def test_all_servers_page_by_page() -> None:
    first = "/servers/detail?all_tenants=1&limit=1000"
    elsewhere = [{"rel": "next", "href": "https://other.example.org/servers?marker=1"}]
    pages = {
        first: {"servers": [{"id": "1"}], "servers_links": elsewhere},
        f"{first}&marker=1": {"servers": [{"id": "2"}], "servers_links": elsewhere},
        f"{first}&marker=2": {"servers": []},
    }
    catalog = Catalog({("compute", path): body for path, body in pages.items()})
    assert list(read_placed_servers(catalog.services())) == [{"id": "1"}, {"id": "2"}]
    assert catalog.paths == list(pages)
    assert set(catalog.microversions) == {None}
    del catalog.answers["compute", f"{first}&marker=2"]  # type: ignore[attr-defined]
    with pytest.raises(ComputeApiUnavailable, match="Nova's API cannot be asked for servers"):
        list(read_placed_servers(catalog.services()))
    odd = {("compute", first): {"servers": [{"name": "web"}]}}
    with pytest.raises(ComputeApiUnavailable, match="the answer is not a list of servers"):
        list(read_placed_servers(Catalog(odd).services()))


@pytest.mark.parametrize(
    ("newest", "asked"),
    [
        pytest.param("2.100", ["2.100"], id="Nova 31 to 34"),
        pytest.param("2.96", ["2.100", "2.98", "2.96"], id="Nova 29"),
        pytest.param("2.60", ["2.100", "2.98", "2.96", "2.73", "2.47"], id="Nova 17"),
    ],
)
def test_the_newest_microversion_that_nova_has(newest: str, asked: list[str]) -> None:
    path = "/servers/detail?all_tenants=1&limit=1000"
    catalog = Catalog({("compute", path): {"servers": [{"id": "1"}]}}, newest=newest)
    assert list(read_all_servers(catalog.services())) == [{"id": "1"}]
    assert catalog.microversions == asked


def test_the_migrations_of_each_status() -> None:
    path = "/os-migrations?status={}&limit=1000"
    answers: dict[tuple[str, str], object] = {
        ("compute", path.format(status)): {"migrations": []} for status in IN_PROGRESS
    }
    first = {"migrations": [{"id": 7, "uuid": "m"}], "migrations_links": []}
    answers["compute", path.format("running")] = first
    answers["compute", path.format("running") + "&marker=m"] = {"migrations": []}
    catalog = Catalog(answers)
    assert list(read_migrations(catalog.services())) == [{"id": 7, "uuid": "m"}]
    assert len(catalog.paths) == len(IN_PROGRESS) + 1


def test_the_images_that_are_hidden_too() -> None:
    shown = "/v2/images?visibility=all&os_hidden=false&limit=1000"
    hidden = "/v2/images?visibility=all&os_hidden=true&limit=1000"
    answers = {
        ("image", shown): {"images": [{"id": "i"}], "next": "/v2/images?marker=i"},
        ("image", f"{shown}&marker=i"): {"images": []},
        ("image", hidden): {"images": [{"id": "h"}]},
    }
    assert list(read_images(Catalog(answers).services())) == [{"id": "i"}, {"id": "h"}]


def test_aggregates_with_their_hosts_and_metadata() -> None:
    body = {"uuid": "u", "name": "n", "availability_zone": None, "hosts": ["h"]}
    answers = {("compute", "/os-aggregates"): {"aggregates": [{**body, "metadata": {"ssd": "1"}}]}}
    assert read_aggregates(Catalog(answers).services()) == [
        HostAggregate("u", "n", None, ("h",), {"ssd": "1"})
    ]
