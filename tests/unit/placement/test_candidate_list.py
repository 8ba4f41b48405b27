"""The list of candidates of the openstack client, and every way in which it can be wrong."""

from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.placement.candidate_answer import read_candidate_list

A, B = "a" * 8 + "-0000-4000-8000-" + "a" * 12, "b" * 8 + "-0000-4000-8000-" + "b" * 12


def row(number: object, provider: object = A, **changed: object) -> dict[str, Any]:
    return {
        "#": number,
        "allocation": "VCPU=1,MEMORY_MB=512",
        "resource provider": provider,
        "inventory used/capacity": "VCPU=2/8,MEMORY_MB=0/4096,CUSTOM_GOLD=1/1",
        "traits": "COMPUTE_NODE,HW_CPU_X86_AVX2",
        **changed,
    }


def test_hosts_with_amounts_and_traits() -> None:
    answer = read_candidate_list([row(1), row(2, B, traits="")], where="list")
    assert [request.allocations for request in answer.allocation_requests] == [
        {A: {"VCPU": 1, "MEMORY_MB": 512}},
        {B: {"VCPU": 1, "MEMORY_MB": 512}},
    ]
    assert answer.provider_summaries[A] == {
        "resources": {
            "VCPU": {"used": 2, "capacity": 8},
            "MEMORY_MB": {"used": 0, "capacity": 4096},
            "CUSTOM_GOLD": {"used": 1, "capacity": 1},
        },
        "traits": ["COMPUTE_NODE", "HW_CPU_X86_AVX2"],
        "parent_provider_uuid": None,
        "root_provider_uuid": A,
    }
    assert answer.hosts() == (A, B)
    assert answer.provider_summaries[B]["traits"] == []


def test_no_candidates() -> None:
    assert read_candidate_list([], where="list").hosts() == ()


WITHOUT_TRAITS = {key: value for key, value in row(1).items() if key != "traits"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["row"], "list, row 1: got 'row'; give an object"),
        ([{"#": 1}], "list, row 1: no column allocation, resource provider, inventory used/cap"),
        ([WITHOUT_TRAITS], "no column traits; .* with --os-placement-api-version 1.29 or newer"),
        ([row(True)], "list, row 1, #: got True; give the number"),
        ([row("1")], "list, row 1, #: got '1'; give the number"),
        ([row(1, None)], "list, row 1, resource provider: got None; give a text"),
        ([row(1, "")], "list, row 1, resource provider: got ''; give the uuid"),
        ([row(1, allocation="VCPU")], "row 1, allocation: got 'VCPU'; give the column as"),
        ([row(1, allocation="VCPU=-1")], "row 1, allocation: got 'VCPU=-1'; give"),
        ([row(1, allocation="VCPU=1,")], "row 1, allocation: got ''; give the column"),
        ([row(1, allocation="VCPU=1e9")], "row 1, allocation: got 'VCPU=1e9'"),
        ([row(1, allocation="VCPU=" + "9" * 99)], "row 1, allocation: got 'VCPU=999"),
        ([row(1, allocation="VGPU=1")], "row 1, allocation: got 'VGPU'; name a resource class"),
        ([row(1, traits=["A"])], "row 1, traits: got a list; give a text"),
        ([row(1, traits="A,b")], "row 1, traits: got 'b'; give the column as"),
        (
            [row(1), row(1, B)],
            "list, row 2: candidate 1 has several providers; .* leave out --cand",
        ),
        ([row(1), row(2, traits="A")], "row 2, resource provider: .* give the same inventory"),
    ],
)
def test_faults(rows: list[object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        read_candidate_list(rows, where="list")


def test_every_fault_is_named() -> None:
    with pytest.raises(InvalidInput) as raised:
        read_candidate_list(
            [row("x"), row(2, B, traits=7), row(3, "c", allocation="?")], where="l"
        )
    places = [fault.where for fault in raised.value.faults]
    assert places == ["l, row 1, #", "l, row 2, traits", "l, row 3, allocation"]
