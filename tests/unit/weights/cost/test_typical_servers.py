"""The shapes of servers, and how often servers of each shape are requested."""

from typing import Any

import pytest

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.typical_servers import (
    HALF_LIFE,
    MOST_SHAPES,
    ServerShape,
    TypicalServers,
)


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
    shape = ServerShape.from_groups(groups(1, 1_000, **traits))
    ((group, count),) = shape.groups
    assert (group.allows(frozenset({"CUSTOM_A"})), count) == (works, 1)


def test_equal_groups_are_counted() -> None:
    shape = ServerShape.from_groups(groups(4, 1_000, 1_000, 500))
    assert [count for _, count in shape.groups] == [2, 1]
    assert shape.amounts() == {"VCPU": 4, "VGPU": 2_500}


def shape(vcpus: int) -> ServerShape:
    return ServerShape(anywhere=(("VCPU", vcpus),), groups=())


def test_the_most_frequent_shape_comes_first() -> None:
    seen = TypicalServers()
    for vcpus in (1, 2, 2, 2):
        seen.add(shape(vcpus))
    shares = seen.shares()
    assert list(shares) == [shape(2), shape(1)]
    assert round(shares[shape(2)], 2) == 0.75


def test_requests_fade_out() -> None:
    seen = TypicalServers()
    for vcpus in (1, 2):
        for _ in range(HALF_LIFE):
            seen.add(shape(vcpus))
    assert round(seen.shares()[shape(2)], 3) == 0.667  # 2 to 1


def test_rare_shapes_are_dropped() -> None:
    seen = TypicalServers()
    for vcpus in range(1, 2 * MOST_SHAPES + 1):
        seen.add(shape(1))
        seen.add(shape(vcpus + 1))
    assert len(seen.shares()) <= 2 * MOST_SHAPES
    assert next(iter(seen.shares())) == shape(1)
