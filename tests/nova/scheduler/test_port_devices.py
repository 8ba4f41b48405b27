"""From which providers the PCI devices of a server are taken."""

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects
from nova.exception import PciDeviceRequestFailed
from nova.pci.stats import PciDeviceStats
from oslo_utils.fixture import uuidsentinel as uuids

from cpu_tiers.nova.candidate_cells import NodesUnknown
from cpu_tiers.nova.scheduler import port_devices

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
    monkeypatch.setattr(port_devices, "_INTERFACES", {})


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


def candidates(*devices: str) -> list[dict[str, Any]]:
    return [{"mappings": {"": ["root"], "port": [device]}} for device in devices]


def learn(client: Client, group: Any, *devices: str) -> None:
    port_devices.learn(client, CONTEXT, {"port": group}, candidates(*devices))


def test_the_names_of_devices_are_asked_for_once() -> None:
    client = Client()
    learn(client, GROUP, "a", "b")
    learn(client, GROUP, "b", "c")
    url = "/resource_providers?required=CUSTOM_PHYSNET_P,CUSTOM_VNIC_TYPE_DIRECT"
    assert client.asked == [url]
    unlisted = {"in:CUSTOM_PHYSNET_P,CUSTOM_PHYSNET_Q", "!CUSTOM_SLOW"}
    learn(client, SimpleNamespace(required_traits=unlisted), "new")
    assert client.asked == [url, "/resource_providers"]


def test_nothing_is_asked_without_candidates_or_ports() -> None:
    client = Client()
    learn(client, GROUP)
    port_devices.learn(client, CONTEXT, {}, candidates("a"))
    assert client.asked == []


def test_a_placement_that_refuses() -> None:
    with pytest.raises(NodesUnknown, match="503 away"):
        learn(Client(503), GROUP, "a")


def request(requester: str | None) -> objects.InstancePCIRequest:
    return objects.InstancePCIRequest(
        count=1,
        spec=[{"physical_network": "p"}],
        request_id=uuids.request,
        requester_id=requester,
    )


def interfaces(
    requests: Sequence[objects.InstancePCIRequest], mapping: Mapping[str, Sequence[str]] | None
) -> list[str | None]:
    """Return the interfaces that Nova's function is asked for."""
    seen: list[str | None] = []

    def apply_requests(stats: Any, asked: Sequence[Any], *_args: Any) -> None:
        seen.extend(one.spec[0].get("parent_ifname") for one in asked)
        stats.pools.clear()

    stats = SimpleNamespace(pools=[{"count": len(requests)}])
    port_devices._take_from_device(apply_requests)(stats, requests, mapping)
    return seen


@pytest.mark.parametrize(
    ("requester", "mapping", "interface"),
    [
        pytest.param("port", {"port": ["a"]}, "ens0", id="a port with bandwidth"),
        pytest.param("port", {"port": ["b"], "other": ["a"]}, "ens1", id="two groups"),
        pytest.param("port", {"other": ["a"]}, None, id="a port without bandwidth"),
        pytest.param(None, {"port": ["a"]}, None, id="an alias"),
        pytest.param("port", {"port": ["c"]}, None, id="a name of another form"),
        pytest.param("port", {"port": ["d"]}, None, id="an empty interface"),
        pytest.param("port", {"port": ["unknown"]}, None, id="a device that is not known"),
        pytest.param("port", {"port": []}, None, id="no device"),
        pytest.param("port", None, None, id="nova-compute"),
    ],
)
def test_the_interface_of_a_request(
    requester: str | None, mapping: Mapping[str, Sequence[str]] | None, interface: str | None
) -> None:
    learn(Client(), GROUP, "a")
    asked = request(requester)
    assert interfaces([asked], mapping) == [interface]
    assert asked.spec == [{"physical_network": "p"}]  # which is saved


def test_a_virtual_function_of_the_interface_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pools of one virtual function; the second port of an interface finds none."""
    wrapped = port_devices._take_from_device(PciDeviceStats.apply_requests)
    monkeypatch.setattr(PciDeviceStats, "apply_requests", wrapped)
    learn(Client(), GROUP, "a")
    stats = PciDeviceStats(objects.NUMATopology(cells=[]))
    stats.pools = [
        {"physical_network": "p", "parent_ifname": name, "count": 1, "devices": []}
        for name in ("ens0", "ens1")
    ]
    stats.apply_requests([request("port")], {"port": ["b"]})
    assert [pool["parent_ifname"] for pool in stats.pools] == ["ens0"]
    with pytest.raises(PciDeviceRequestFailed):
        stats.apply_requests([request("port")], {"port": ["b"]})
    assert stats.support_requests([request("port")], {"port": ["a"]})


NEAR, ALSO_NEAR, FAR = "near", "also near", "far"


def two_cards(*providers: str, policy: str = "preferred") -> bool:
    """Tell whether a candidate with these providers gives a server on cell 11 two cards.

    Cell 11 has two free cards of each of two devices, cell 2 has one free card of a third device.
    """
    stats = PciDeviceStats(objects.NUMATopology(cells=[]))
    stats.pools = [
        {"product_id": "card", "numa_node": node, "rp_uuid": uuid, "count": count, "devices": []}
        for uuid, node, count in ((NEAR, 11, 2), (FAR, 2, 1), (ALSO_NEAR, 11, 2))
    ]
    cards = objects.InstancePCIRequest(
        count=2,
        spec=[{"product_id": "card"}],
        alias_name="card",
        request_id=uuids.request,
        requester_id=None,
        numa_policy=policy,
    )
    groups = {f"{uuids.request}-{number}": [uuid] for number, uuid in enumerate(providers)}
    cells = [objects.InstanceNUMACell(id=11)]
    fits: bool = stats.support_requests([cards], groups, cells)
    return fits


@pytest.mark.parametrize("policy", ["preferred", "legacy", "required"])
def test_a_candidate_gives_all_devices_of_an_alias(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nova 34 takes one card, of the near device, for a candidate with a near and a far one."""
    assert two_cards(NEAR, FAR, policy=policy)
    wrapped = port_devices._take_from_device(PciDeviceStats.apply_requests)
    monkeypatch.setattr(PciDeviceStats, "apply_requests", wrapped)
    assert not two_cards(NEAR, FAR, policy=policy)
    assert not two_cards(FAR, ALSO_NEAR, policy=policy)
    assert two_cards(NEAR, NEAR, policy=policy)
    assert two_cards(NEAR, ALSO_NEAR, policy=policy)


def test_groups_of_devices() -> None:
    spec = objects.RequestSpec(
        requested_resources=[
            objects.RequestGroup(requester_id=name) for name in ("sriov", "ovs", None)
        ],
        pci_requests=objects.InstancePCIRequests(
            requests=[request("sriov"), request(None), request("no bandwidth")]
        ),
    )
    assert port_devices.groups_of_devices(spec) == {"sriov"}
    spec.requested_resources = None
    assert port_devices.groups_of_devices(spec) == frozenset()
    spec.pci_requests = None
    assert port_devices.groups_of_devices(spec) == frozenset()
    assert port_devices.groups_of_devices(objects.RequestSpec()) == frozenset()
