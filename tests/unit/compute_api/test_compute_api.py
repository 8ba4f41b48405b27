"""Messages about services that do not answer, and about answers of another form."""

from dataclasses import replace

import pytest
import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import EndpointNotFound
from keystoneauth1.session import Session

from cpu_tiers.tools.compute_api import PORT, ComputeApiUnavailable, get, part
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.http.services import OPENSTACK_CLIENT, Services
from tests.unit.placement.scripted import answer

PATH = "/v2.0/ports"


class Absent(Session):
    """Stands for a catalog without a service."""

    def request(self, *_: object, **options: object) -> requests.Response:
        raise EndpointNotFound(f"no endpoint of {options['endpoint_filter']}")


class Answering(Session):
    """Gives its answers one after the other."""

    def __init__(self, *answers: requests.Response) -> None:
        super().__init__()
        self.answers = list(answers)

    def request(self, *_: object, **__: object) -> requests.Response:
        return self.answers.pop(0)

    def services(self) -> Services:
        """Return the services that give these answers, after each other."""
        return Services(
            adapter=lambda kind: Adapter(self, service_type=kind),
            retry_policy=RetryPolicy(sleep=lambda _: None),
        )


def test_an_answer_that_is_cut_off_is_asked_for_again() -> None:
    cut_off, whole = answer(200, b'{"ports": ['), answer(200, {"ports": []})
    script = Answering(cut_off, answer(200, b"", ""), cut_off, whole)
    assert get(script.services(), PORT, PATH) == {"ports": []}
    script = Answering(*[cut_off] * 9)
    with pytest.raises(ComputeApiUnavailable, match="Neutron cannot be asked for ports"):
        get(script.services(), PORT, PATH)
    assert len(script.answers) == 9 - 4


def test_an_answer_of_a_proxy_is_not_asked_for_again() -> None:
    script = Answering(*[answer(200, b"<html>", "text/html")] * 9)
    with pytest.raises(ComputeApiUnavailable, match="Neutron cannot be asked for ports"):
        get(script.services(), PORT, PATH)
    assert len(script.answers) == 9 - 1


def test_a_service_that_the_catalog_lacks() -> None:
    def adapter(kind: str) -> Adapter:
        return Adapter(Absent(), service_type=kind, interface=["internal"])

    services = Services(adapter=adapter, retry_policy=RetryPolicy(attempts=1))
    with pytest.raises(ComputeApiUnavailable) as raised:
        get(services, PORT, PATH)
    message = str(raised.value)
    assert message.startswith("GET /v2.0/ports: Neutron cannot be asked for ports: no endpoint of")
    assert "'interface': ['internal']" in message
    assert message.endswith("in [placement] of nova.conf, and the endpoint of the service network")
    services = replace(services, settings=OPENSTACK_CLIENT)
    with pytest.raises(ComputeApiUnavailable, match=r"domains in clouds.yaml or OS_\*, and"):
        get(services, PORT, PATH)


@pytest.mark.parametrize("body", [None, [], {}, {"ports": {}}])
def test_a_part_of_another_form(body: object) -> None:
    with pytest.raises(ComputeApiUnavailable, match=r"is not a list of ports; .* service network"):
        part(body, "ports", list, PORT, PATH)
    assert part({"ports": [1]}, "ports", list, PORT, PATH) == [1]
