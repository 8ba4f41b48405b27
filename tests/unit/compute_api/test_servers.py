"""A server, its image and its ports, as Nova, Glance and Neutron answer."""

from collections.abc import Mapping

import pytest

from cpu_tiers.tools.compute_api import (
    ComputeApiUnavailable,
    ReadServer,
    read_server,
    read_server_names,
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


def test_the_names_of_all_servers() -> None:
    first = "/servers?all_tenants=1&limit=1000"
    elsewhere = [{"rel": "next", "href": "https://other.example.org/servers?marker=1"}]
    pages = {
        first: {"servers": [{"id": "1", "name": "web"}], "servers_links": elsewhere},
        f"{first}&marker=1": {"servers": [{"id": "2", "name": None}], "servers_links": elsewhere},
        f"{first}&marker=2": {"servers": []},
    }
    catalog = Catalog({("compute", path): body for path, body in pages.items()})
    assert read_server_names(catalog.services()) == {"1": "web"}
    assert catalog.paths == list(pages)
    del catalog.answers["compute", f"{first}&marker=2"]  # type: ignore[attr-defined]
    with pytest.raises(ComputeApiUnavailable, match="Nova's API cannot be asked for servers"):
        read_server_names(catalog.services())
    odd = {("compute", first): {"servers": [{"name": "web"}]}}
    with pytest.raises(ComputeApiUnavailable, match="the answer is not a list of servers"):
        read_server_names(Catalog(odd).services())
