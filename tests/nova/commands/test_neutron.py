"""Neutron's ports through Nova's client: what is read, what is written, and what goes wrong."""

from typing import Any
from unittest import mock

import pytest
from nova import exception
from nova.network import neutron

from cpu_tiers.accounting.holdings import ProviderId
from cpu_tiers.accounting.port_bindings import PortBinding
from cpu_tiers.tools.nova.neutron import NeutronUnavailable, Ports
from cpu_tiers.tools.placement.port_healing import PortGone, PortNotRecorded

REQUEST = {"resources": {"NET_BW_EGR_KILOBIT_PER_SEC": 10}, "required": []}
ASKS = {"id": "a", "device_id": "s1", "resource_request": REQUEST, "binding:profile": {"x": 1}}
BODIES = [
    ASKS,
    {"id": "b", "device_id": "s1", "resource_request": None, "binding:profile": {}},
    {"id": "c", "device_id": "s2", "resource_request": REQUEST, "binding:profile": "odd"},
    {"id": "d", "device_id": "s1", "resource_request": REQUEST, "binding:profile": None},
]


@pytest.fixture
def client() -> Any:
    with mock.patch.object(neutron, "get_client") as get_client:
        get_client.return_value.list_ports.return_value = {"ports": BODIES}
        yield get_client.return_value


def test_ports_that_request_resources_by_their_server(client: Any) -> None:
    ports = Ports(None).of_host("c1")
    assert {server: [port.id for port in of] for server, of in ports.items()} == {
        "s1": ["a", "d"],  # b requests nothing
        "s2": ["c"],
    }
    assert client.list_ports.call_args.kwargs["binding:host_id"] == "c1"
    assert ports["s1"][1].binding_profile == {}
    assert ports["s2"][0].binding_profile == {"allocation": "odd"}  # where it is refused
    assert Ports(None).of_server("s3") == ()


def binding(client: Any) -> PortBinding:
    port = Ports(None).of_server("s1")[0]
    return PortBinding(port=port, providers={"a": ProviderId("nic")})


def test_a_profile_keeps_its_other_keys(client: Any) -> None:
    Ports(None).record(binding(client))
    body = {"port": {"binding:profile": {"x": 1, "allocation": "nic"}}}
    client.update_port.assert_called_once_with("a", body)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(neutron.neutron_client_exc.PortNotFoundClient(), PortGone, id="404"),
        pytest.param(neutron.neutron_client_exc.Conflict(), PortNotRecorded, id="409"),
        pytest.param(exception.Forbidden(), PortNotRecorded, id="Nova's own error"),
    ],
)
def test_a_profile_that_is_not_written(client: Any, error: Exception, kind: type) -> None:
    client.update_port.side_effect = error
    with pytest.raises(kind):
        Ports(None).record(binding(client))


def test_a_neutron_that_does_not_answer(client: Any) -> None:
    client.list_ports.side_effect = neutron.neutron_client_exc.ConnectionFailed(reason="refused")
    with pytest.raises(NeutronUnavailable, match=r"check \[neutron\] in nova.conf"):
        Ports(None).of_host("c1")
