"""A server, its image and its ports, as Nova, Glance and Neutron answer."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session

from cpu_tiers.compute_api.answers import ComputeApiUnavailable
from cpu_tiers.compute_api.servers import ReadServer, read_server
from cpu_tiers.http.retries import RetryPolicy

UUID = "5c0b2c1e-0f5a-4a52-9a3f-0c2a3fb4a0a1"
FLAVOR = {"original_name": "gold", "vcpus": 1, "ram": 512, "disk": 1, "extra_specs": {}}
SERVER = {"server": {"name": "web", "flavor": FLAVOR, "image": {"id": "i"}}}
ANSWERS = {
    ("compute", f"/servers/{UUID}"): SERVER,
    ("image", "/v2/images/i"): {"name": "cirros", "hw_disk_bus": "scsi"},
    ("network", f"/v2.0/ports?device_id={UUID}"): {"ports": [{"id": "p"}, "no port"]},
}


class Catalog(Session):
    """Stands for a session of keystoneauth1 with three services."""

    def __init__(self, answers: Mapping[tuple[str, str], object]) -> None:
        super().__init__()
        self.answers = answers
        self.microversions: list[object] = []

    # The adapter gives all other arguments by name.
    def request(  # type: ignore[override]
        self, url: str, method: str, **options: Any
    ) -> requests.Response:
        assert method == "GET"
        self.microversions.append(options.get("microversion"))
        service = options["endpoint_filter"]["service_type"]
        response = requests.Response()
        response.status_code = 200
        response._content = json.dumps(self.answers[service, url]).encode()
        return response


def read(answers: Mapping[tuple[str, str], object]) -> tuple[ReadServer, Catalog]:
    catalog = Catalog(answers)
    policy = RetryPolicy(sleep=lambda _: None)
    return read_server(Adapter(catalog, service_type="placement"), UUID, policy), catalog


def test_server_image_and_ports() -> None:
    server, catalog = read(ANSWERS)
    image = {"name": "cirros", "hw_disk_bus": "scsi"}
    assert server == ReadServer("web", FLAVOR, image, ({"id": "p"},))
    assert catalog.microversions == ["2.47", None, None]


def test_a_server_from_a_volume_has_no_image() -> None:
    of_nova = {"server": {**SERVER["server"], "image": ""}}
    assert read({**ANSWERS, ("compute", f"/servers/{UUID}"): of_nova})[0].image is None


@pytest.mark.parametrize(
    ("key", "answer", "message"),
    [
        (("compute", f"/servers/{UUID}"), {"server": {}}, "not a server; .* service compute"),
        (("image", "/v2/images/i"), [], "not an image; .* service image"),
        (("network", f"/v2.0/ports?device_id={UUID}"), {}, "not a list of ports; .* network"),
    ],
)
def test_answers_of_another_form(key: tuple[str, str], answer: object, message: str) -> None:
    with pytest.raises(ComputeApiUnavailable, match=message):
        read({**ANSWERS, key: answer})
