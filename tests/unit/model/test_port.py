from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.port import Port, PortRequest
from cpu_tiers.model.request import RequestGroup, SameSubtree

EGRESS, INGRESS = "NET_BW_EGR_KILOBIT_PER_SEC", "NET_BW_IGR_KILOBIT_PER_SEC"
PACKETS = "NET_PACKET_RATE_KILOPACKET_PER_SEC"
FLAT: dict[str, Any] = {
    "resources": {EGRESS: 1000, INGRESS: 2000},
    "required": ["CUSTOM_PHYSNET_2", "CUSTOM_VNIC_TYPE_NORMAL"],
}
GROUPED: dict[str, Any] = {
    "request_groups": [
        {"id": "bw", **FLAT},
        {"id": "pps", "resources": {PACKETS: 100}, "required": ["CUSTOM_VNIC_TYPE_NORMAL"]},
    ],
    "same_subtree": ["bw", "pps"],
}


def group(name: str, resources: dict[str, int], *required: str) -> RequestGroup:
    return RequestGroup(
        suffix=name, resources=resources, required=frozenset(required), requester_id=name
    )


def read(request: object) -> PortRequest:
    return Port(id="p1", resource_request=request).request


def test_the_flat_form_is_a_single_group_named_by_the_port() -> None:
    wanted = group("p1", FLAT["resources"], "CUSTOM_PHYSNET_2", "CUSTOM_VNIC_TYPE_NORMAL")
    assert read(FLAT) == PortRequest(groups=(wanted,))


def test_the_grouped_form_has_a_group_for_each_request_group() -> None:
    assert read(GROUPED) == PortRequest(
        groups=(
            group("bw", FLAT["resources"], "CUSTOM_PHYSNET_2", "CUSTOM_VNIC_TYPE_NORMAL"),
            group("pps", {PACKETS: 100}, "CUSTOM_VNIC_TYPE_NORMAL"),
        ),
        same_subtree=(SameSubtree(("bw", "pps")),),
        is_grouped=True,
    )


@pytest.mark.parametrize(
    "request_", [None, {}, {"resources": {}, "required": []}, {"resources": {EGRESS: 0}}], ids=str
)
def test_nothing_is_asked_for(request_: object) -> None:
    assert read(request_) == PortRequest()


def test_the_grouped_form_without_groups() -> None:
    assert read({"request_groups": [], "same_subtree": []}) == PortRequest(is_grouped=True)


def test_an_amount_of_zero_removes_the_group_from_the_subtree() -> None:
    request = {
        "request_groups": [
            {"id": "a", "resources": {EGRESS: 0}},
            {"id": "b", "resources": {PACKETS: 1}},
        ],
        "same_subtree": ["a", "b"],
    }
    assert read(request) == PortRequest(
        groups=(group("b", {PACKETS: 1}),), same_subtree=(SameSubtree(("b",)),), is_grouped=True
    )


def test_alternative_traits_and_forbidden_traits() -> None:
    required = ["in:CUSTOM_PHYSNET_1,CUSTOM_PHYSNET_2", "CUSTOM_A", "!CUSTOM_B", "in:CUSTOM_C"]
    (found,) = read({"resources": {EGRESS: 1}, "required": required}).groups
    assert found.any_of == {frozenset({"CUSTOM_PHYSNET_1", "CUSTOM_PHYSNET_2"})}
    assert found.required == {"CUSTOM_A", "CUSTOM_C"}
    assert found.forbidden == {"CUSTOM_B"}


def test_a_group_with_a_trait_and_no_amount_is_a_subtree() -> None:
    assert read({"required": ["CUSTOM_BEST_EFFORT_BW"]}) == PortRequest(
        groups=(group("p1", {}, "CUSTOM_BEST_EFFORT_BW"),), same_subtree=(SameSubtree(("p1",)),)
    )


@pytest.mark.parametrize(
    ("request_", "where", "given"),
    [
        pytest.param([], "", "a list", id="no object"),
        pytest.param("{}", "", "'{}'", id="a text"),
        pytest.param(7, "", "7", id="a number"),
        pytest.param({"resources": []}, ", resources", "a list", id="resources no object"),
        pytest.param({"required": "CUSTOM_A"}, ", required", "'CUSTOM_A'", id="required no list"),
        pytest.param({"required": [1]}, ", required", "1", id="a trait that is no text"),
        *(
            pytest.param({"resources": {EGRESS: amount}}, f", resources {EGRESS}", given, id=given)
            for amount, given in [
                (-1, "-1"),
                (1.5, "1.5"),
                (1000.0, "1000.0"),
                (True, "True"),
                (None, "None"),
                ("1000", "'1000'"),
                (2**31, "2147483648"),
            ]
        ),
        pytest.param({"resources": {"NET": 1}}, ", resources NET", "'NET'", id="class"),
        pytest.param({"required": ["PHYSNET"]}, ", required", "'PHYSNET'", id="trait"),
        pytest.param({"required": [""]}, ", required", "''", id="an empty trait"),
        pytest.param({"required": ["in:"]}, ", required", "'in:'", id="any of none"),
        pytest.param(
            {"required": ["in:!CUSTOM_A"]}, ", required", "'in:!CUSTOM_A'", id="two signs"
        ),
        pytest.param(
            {"required": ["CUSTOM_A", "!CUSTOM_A"]}, ", required", "'CUSTOM_A'", id="both wishes"
        ),
        pytest.param({"member_of": "x"}, ", member_of", "'x'", id="a key of the future"),
        pytest.param({"same_subtree": ["a"]}, ", same_subtree", "'a'", id="no such group"),
        pytest.param(
            {"request_groups": [[]]}, ", request_groups[0]", "a list", id="a group that is none"
        ),
        pytest.param(
            {"request_groups": [{"resources": {EGRESS: 1}}]},
            ", request_groups[0], id",
            "None",
            id="a group without an id",
        ),
        pytest.param(
            {"request_groups": [{"id": "a"}, {"id": "a"}]},
            ", request_groups[1], id",
            "'a'",
            id="an id twice",
        ),
        pytest.param({"resources": {}, "request_groups": []}, ", resources", "an object", id="2"),
    ],
)
def test_bad_requests(request_: object, where: str, given: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        read(request_)
    fault = caught.value.faults[0]
    assert fault.where == f"port p1, resource_request{where}"
    assert given in fault.given


def test_an_id_that_placement_cannot_take() -> None:
    with pytest.raises(InvalidInput, match="up to 64 letters"):
        read({"request_groups": [{"id": "a&b", "resources": {EGRESS: 1}}]})


def test_every_fault_at_once() -> None:
    request = {
        "request_groups": [
            {"id": "a", "resources": {EGRESS: -1, "NET": 0.5}, "required": ["nope"]},
            {"id": "a", "resources": 7},
        ],
        "same_subtree": ["z"],
    }
    with pytest.raises(InvalidInput) as caught:
        read(request)
    base = "port p1, resource_request"
    assert [fault.where for fault in caught.value.faults] == [
        f"{base}, request_groups[0], resources {EGRESS}",
        f"{base}, request_groups[0], resources NET",  # no such class
        f"{base}, request_groups[0], resources NET",  # and no such amount
        f"{base}, request_groups[0], required",
        f"{base}, request_groups[1], id",
        f"{base}, request_groups[1], resources",
        f"{base}, same_subtree",
    ]
