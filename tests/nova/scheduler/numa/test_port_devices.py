"""The interfaces of the devices that candidates map the groups of ports to."""

from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects
from oslo_utils.fixture import uuidsentinel as uuids

from cpu_tiers.nova.numa.candidate_cells import NodeMappings
from cpu_tiers.nova.scheduler.numa import joined_answers, numa_query

CONTEXT = SimpleNamespace(global_id="req-1")
GROUP = SimpleNamespace(required_traits={"CUSTOM_VNIC_TYPE_DIRECT", "CUSTOM_PHYSNET_P"})
NAMES = {
    "a": "one:NIC Switch agent:ens0",
    "b": "one:NIC Switch agent:ens1",
    "c": "somebody's own name",
    "d": "one:NIC Switch agent:",
}


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that knows no interface yet."""
    monkeypatch.setattr(joined_answers, "_INTERFACES", {})


class Client:
    """Nova's report client, as far as it is needed: it names the devices of a Placement."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.asked: list[str] = []

    def get(self, url: str, **kwargs: Any) -> Any:
        self.asked.append(url)
        assert kwargs == {"version": "1.18", "global_request_id": "req-1"}
        body = {"resource_providers": [{"uuid": u, "name": n} for u, n in NAMES.items()]}
        return SimpleNamespace(status_code=self.status, text="away", json=lambda: body)


def tell(client: Any, group: Any, *devices: str) -> list[Any]:
    """Return the interface of each device, as the mappings of candidates tell them."""
    mappings = [NodeMappings({"": ["root"], "port": [device]}, (), {}) for device in devices]
    candidates = [{"mappings": each} for each in mappings]
    joined_answers.read_interfaces(client, CONTEXT, {"port": group}, candidates)
    joined_answers.tell_interfaces({"port"}, candidates)
    return [each.interfaces.get("port") for each in mappings]


def test_the_names_of_devices_are_asked_for_once() -> None:
    client = Client()
    assert tell(client, GROUP, "a", "b") == ["ens0", "ens1"]
    # A name of another form, and one without an interface.
    assert tell(client, GROUP, "b", "c", "d") == ["ens1", None, None]
    url = "/resource_providers?required=CUSTOM_PHYSNET_P,CUSTOM_VNIC_TYPE_DIRECT"
    assert client.asked == [url]
    unlisted = {"in:CUSTOM_PHYSNET_P,CUSTOM_PHYSNET_Q", "!CUSTOM_SLOW"}
    assert tell(client, SimpleNamespace(required_traits=unlisted), "new") == [None]
    assert client.asked == [url, "/resource_providers"]


def test_nothing_is_asked_without_numa_nodes_or_ports() -> None:
    client: Any = Client()
    assert tell(client, GROUP) == []
    plain = [{"mappings": {"": ["root"], "port": ["a"]}}]
    joined_answers.read_interfaces(client, CONTEXT, {"port": GROUP}, plain)
    joined_answers.read_interfaces(client, CONTEXT, {}, [{"mappings": NodeMappings({}, (), {})}])
    assert client.asked == []


def test_a_placement_that_refuses() -> None:
    with pytest.raises(ValueError, match="503 away"):
        tell(Client(503), GROUP, "a")


def request(requester: str | None) -> objects.InstancePCIRequest:
    return objects.InstancePCIRequest(
        count=1, spec=[{}], request_id=uuids.request, requester_id=requester
    )


def test_groups_of_devices() -> None:
    spec = objects.RequestSpec(
        requested_resources=[
            objects.RequestGroup(requester_id=name) for name in ("sriov", "ovs", None)
        ],
        pci_requests=objects.InstancePCIRequests(
            requests=[request("sriov"), request(None), request("no bandwidth")]
        ),
    )
    assert numa_query.groups_of_devices(spec) == {"sriov"}
    spec.requested_resources = None
    assert numa_query.groups_of_devices(spec) == frozenset()
    spec.pci_requests = None
    assert numa_query.groups_of_devices(spec) == frozenset()
