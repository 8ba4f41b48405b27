"""Request groups become the shape of a server."""

from typing import Any

import pytest

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.typical_servers import ServerShape


def groups(vcpus: int, *devices: int, **traits: Any) -> tuple[RequestGroup, ...]:
    suffixed = [
        RequestGroup(suffix=f"_{number}", resources={"VGPU": amount}, **traits)
        for number, amount in enumerate(devices)
    ]
    return (RequestGroup(resources={"VCPU": vcpus}), *suffixed)


@pytest.mark.parametrize(
    ("traits", "works"),
    [
        pytest.param({"required": frozenset({"CUSTOM_A"})}, True, id="required and present"),
        pytest.param({"required": frozenset({"CUSTOM_B"})}, False, id="required and absent"),
        pytest.param({"forbidden": frozenset({"CUSTOM_A"})}, False, id="forbidden and present"),
        pytest.param({"any_of": frozenset({frozenset({"CUSTOM_A", "X"})})}, True, id="one of two"),
        pytest.param({"any_of": frozenset({frozenset({"X", "Y"})})}, False, id="none of two"),
    ],
)
def test_traits_of_a_group(traits: Any, works: bool) -> None:
    shape = ServerShape.of(groups(1, 1_000, **traits))
    ((group, count),) = shape.groups
    assert (group.allows(frozenset({"CUSTOM_A"})), count) == (works, 1)


def test_equal_groups_are_counted() -> None:
    shape = ServerShape.of(groups(4, 1_000, 1_000, 500))
    assert [count for _, count in shape.groups] == [2, 1]
    assert shape.amounts() == {"VCPU": 4, "VGPU": 2_500}
