"""nova-compute finds the device of a port that has no part in the server's allocations."""

import logging
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects
from nova.tests.functional.api.client import OpenStackApiException

from cpu_tiers.nova.compute import port_traits
from cpu_tiers.nova.scheduler.features import SCHEDULER
from tests.nova.best_effort import P1, P2, BestEffort
from tests.nova.networks import BRIDGE, EGRESS, held_of_devices

MAP, FREE, *_ = port_traits.SEAMS
TREE = {
    "root": {"COMPUTE_NODE"},
    "agent": {"CUSTOM_VNIC_TYPE_NORMAL"},
    "eth0": {"CUSTOM_VNIC_TYPE_NORMAL", "CUSTOM_PHYSNET_A"},
    "eth1": {"CUSTOM_VNIC_TYPE_NORMAL", "CUSTOM_PHYSNET_B", "CUSTOM_BEST_EFFORT_BW"},
}


class Client:
    """Nova's report client, as far as the seams need it."""

    def __init__(self) -> None:
        self.freed: list[Any] = []

    def get_providers_in_tree(self, context: Any, uuid: str) -> list[dict[str, str]]:
        return [{"uuid": name} for name in TREE]

    def get_provider_traits(self, context: Any, uuid: str) -> Any:
        return SimpleNamespace(traits=TREE[uuid])


def mapping(
    allocation: Mapping[str, Mapping[str, int]], *groups: tuple[Mapping[str, int], Iterable[str]]
) -> list[list[str]]:
    """Return the providers of each group after Nova's function with our wrapper."""

    def original(context: Any, client: Any, spec: Any, allocation: Any) -> None:
        spec.map_requested_resources_to_providers(allocation, TREE)

    assert MAP.wrap
    objects.register_all()
    spec = objects.RequestSpec(
        requested_resources=[
            objects.RequestGroup.from_port_request(
                None, str(number), {"resources": dict(resources), "required": list(required)}
            )
            for number, (resources, required) in enumerate(groups)
        ]
    )
    allocated = {uuid: {"resources": dict(amounts)} for uuid, amounts in allocation.items()}
    MAP.wrap(original)(None, Client(), spec, allocated)
    return [group.provider_uuids for group in spec.requested_resources]


BEST = ["CUSTOM_BEST_EFFORT_BW", "CUSTOM_VNIC_TYPE_NORMAL"]
NETWORK_A = ["CUSTOM_PHYSNET_A"]


@pytest.mark.parametrize(
    ("allocation", "groups", "providers"),
    [
        pytest.param({"root": {"VCPU": 1}}, [({}, BEST)], [["eth1"]], id="only traits"),
        pytest.param({"root": {"VCPU": 1}}, [({EGRESS: 0}, NETWORK_A)], [["eth0"]], id="0"),
        pytest.param(
            {"root": {"VCPU": 1}, "eth1": {EGRESS: 5}, "eth0": {EGRESS: 5}},
            [
                ({EGRESS: 5}, ["in:CUSTOM_PHYSNET_B,CUSTOM_PHYSNET_C"]),
                ({EGRESS: 5}, ["!CUSTOM_PHYSNET_B"]),
                ({}, ["in:CUSTOM_PHYSNET_A,CUSTOM_PHYSNET_C", "CUSTOM_VNIC_TYPE_NORMAL"]),
            ],
            [["eth1"], ["eth0"], ["eth0"]],
            id="any of several, and none of",
        ),
        pytest.param(
            {"eth0": {EGRESS: 5}},
            [({EGRESS: 5, "NET_BW_IGR_KILOBIT_PER_SEC": 0}, NETWORK_A)],
            [["eth0"]],
            id="a minimum of 0 in one direction",
        ),
    ],
)
def test_providers(
    allocation: Mapping[str, Mapping[str, int]], groups: Any, providers: list[list[str]]
) -> None:
    assert mapping(allocation, *groups) == providers


def test_a_device_that_lost_a_trait(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "cpu_tiers"):
        assert mapping({"root": {"VCPU": 1}}, ({}, ["CUSTOM_GONE", *BEST])) == [["eth1"]]
    assert caplog.messages == ["Port 0 goes back to provider eth1, which lacks CUSTOM_GONE"]


def test_the_allocations_that_are_freed() -> None:
    freed: list[Any] = []
    assert FREE.wrap
    free = FREE.wrap(lambda *arguments: freed.append(arguments[3]))
    free(None, None, "server", {"eth0": {"resources": {}}})
    both = {EGRESS: 5, "NET_BW_IGR_KILOBIT_PER_SEC": 0}
    free(None, None, "server", {"eth0": {"resources": both}, "eth1": {"resources": {EGRESS: 0}}})
    assert freed == [{}, {"eth0": {"resources": {EGRESS: 5}}}]


class TestPortTraits(BestEffort):
    def test_a_revert_and_a_detachment(self) -> None:
        SCHEDULER.start()
        self.server = self.server_of(P1, P2, host="one")
        self._resize_server(self.server, self.flavor("large", vcpus=2))
        self.is_on("two")
        self._revert_resize(self.server)
        self.is_on("one")
        self._detach_interface(self.server, P1)
        held = held_of_devices(self.client, self.server["id"])
        assert held == {BRIDGE.format("one"): {EGRESS: 500}}
        self._detach_interface(self.server, P2)
        assert held_of_devices(self.client, self.server["id"]) == {}

    def test_a_port_on_any_of_two_networks_is_attached(self) -> None:
        self.server = self.server_of(host="one", networks="none")
        # Placement does not know CUSTOM_PHYSNET_NOWHERE before.
        self._attach_interface(self.server, P2)
        device = held_of_devices(self.client, self.server["id"])
        assert device == {BRIDGE.format("one"): {EGRESS: 500}}
        bound = self.neutron.show_port(P2)["port"]["binding:profile"]["allocation"]
        assert list(bound.values()) == [self.device_of("one")]
        self._detach_interface(self.server, P2)
        assert held_of_devices(self.client, self.server["id"]) == {}

    def test_a_port_without_room_is_not_attached(self) -> None:
        self.server = self.server_of(host="none", networks="none")
        assert "Failed to allocate additional resources" in self.refusal_of(P2)

    def test_a_port_that_requests_only_traits_is_not_attached(self) -> None:
        self.server = self.server_of(host="one", networks="none")
        assert "The port requests only traits" in self.refusal_of(P1)
        assert self.neutron.show_port(P1)["port"]["binding:profile"] == {}

    def refusal_of(self, port: str) -> str:
        """Return the message of the API, which does not attach a port."""
        with pytest.raises(OpenStackApiException) as refusal:
            self._attach_interface(self.server, port)
        assert refusal.value.response.status_code == 400
        assert held_of_devices(self.client, self.server["id"]) == {}
        return str(refusal.value)
