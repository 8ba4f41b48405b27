"""Messages about services that do not answer, and about answers of another form."""

import pytest
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import EndpointNotFound
from keystoneauth1.session import Session

from cpu_tiers.compute_api.answers import (
    NEUTRON,
    ComputeApiUnavailable,
    Wanted,
    get,
    part,
    service_adapter,
)
from cpu_tiers.http.retries import RetryPolicy

PORTS = Wanted(NEUTRON, "ports", "a list of ports")


class Absent(Session):
    """Stands for a catalog without a service."""

    def request(self, *_: object, **options: object) -> requests.Response:
        raise EndpointNotFound(f"no endpoint of {options['endpoint_filter']}")


def test_a_service_that_the_catalog_lacks() -> None:
    placement = Adapter(Absent(), service_type="placement", interface=["internal"])
    adapter = service_adapter(placement, NEUTRON.service_type)
    with pytest.raises(ComputeApiUnavailable) as raised:
        get(adapter, "/v2.0/ports", RetryPolicy(attempts=1), PORTS)
    message = str(raised.value)
    assert message.startswith("GET /v2.0/ports: Neutron cannot be asked for ports: no endpoint of")
    assert "'interface': ['internal']" in message
    assert message.endswith("in [placement] of nova.conf, and the endpoint of the service network")


@pytest.mark.parametrize("body", [None, [], {}, {"ports": {}}])
def test_a_part_of_another_form(body: object) -> None:
    with pytest.raises(ComputeApiUnavailable, match=r"is not a list of ports; .* service network"):
        part(body, "ports", list, "/v2.0/ports", PORTS)
    assert part({"ports": [1]}, "ports", list, "/", PORTS) == [1]
