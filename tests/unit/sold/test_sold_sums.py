"""The sums of hosts and resource classes, and the order of hosts by need."""

import pytest

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.sold.sold import SoldAmount, TierSale
from cpu_tiers.tools.sold.sold_sums import (
    class_order,
    class_sums,
    group_sums,
    host_sums,
    least_left,
    percent,
)


def amount(
    host: str, name: str, used: int, capacity: int, provider: str = "", **tiers: int
) -> SoldAmount:
    """Return what is sold of a resource class; a server has what a tier has."""
    return SoldAmount(
        host=host,
        provider=provider or host,
        resource_class=name,
        capacity=capacity,
        used=used,
        tiers={tier: TierSale(1, of_tier) for tier, of_tier in tiers.items()},
    )


def test_the_order_of_classes() -> None:
    assert class_order(["VGPU", "DISK_GB", "VCPU", "CUSTOM_A", VCPU_SHARES, "VCPU"]) == [
        "VCPU",
        VCPU_SHARES,
        "DISK_GB",
        "CUSTOM_A",
        "VGPU",
    ]


def test_the_sums_of_classes() -> None:
    sums = class_sums(
        [
            amount("a", "VCPU", 3, 4, gold=1, silver=2),
            amount("b", "VCPU", 7, 6, gold=7),
            amount("b", "VGPU", 0, 0),
        ]
    )
    vcpu = sums["VCPU"]
    assert (vcpu.used, vcpu.capacity, vcpu.over, vcpu.left) == (10, 10, 1, 0.0)
    assert vcpu.tiers == {"gold": TierSale(2, 8), "silver": TierSale(1, 2)}
    assert sums["VGPU"].left is None


@pytest.mark.parametrize(
    ("amounts", "order"),
    [
        pytest.param([], [], id="no hosts"),
        pytest.param(
            [amount("a", "VCPU", 1, 4), amount("b", "VCPU", 3, 4)],
            ["b", "a"],
            id="1/4 left before 3/4 left",
        ),
        pytest.param(
            [amount("a", "VCPU", 4, 4), amount("b", "VCPU", 1, 4), amount("b", "PCPU", 3, 2)],
            ["b", "a"],
            id="over the capacity before full",
        ),
        pytest.param(
            [
                amount("a", "VCPU", 3, 4),
                amount("b", "VCPU", 3, 2, "b_NUMA0"),
                amount("b", "VCPU", 0, 2, "b_NUMA1"),
            ],
            ["b", "a"],
            id="a NUMA node over its capacity, though the host has something left",
        ),
        pytest.param(
            [amount("a", "VCPU", 0, 0), amount("b", "VCPU", 0, 4)],
            ["b", "a"],
            id="no capacity comes last",
        ),
        pytest.param(
            [amount("b", "VCPU", 1, 4), amount("a", "VCPU", 1, 4)], ["a", "b"], id="equal: by name"
        ),
    ],
)
def test_the_order_of_hosts(amounts: list[SoldAmount], order: list[str]) -> None:
    assert list(host_sums(amounts)) == order


def test_the_least_left_of_a_host() -> None:
    # 1 - 1/4 of VCPU, 1 - 1/2 of PCPU
    sums = class_sums([amount("a", "VCPU", 1, 4), amount("a", "PCPU", 1, 2)])
    assert least_left(sums, default=2.0) == 0.5
    assert least_left({}, default=2.0) == 2.0


@pytest.mark.parametrize(
    ("part", "text"),
    [(None, "-"), (0.125, "12 %"), (-0.004, "0 %"), (-0.25, "-25 %"), (0.0, "0 %"), (1, "100 %")],
)
def test_percents(part: float | None, text: str) -> None:
    assert percent(part) == text


def test_a_capacity_below_zero() -> None:
    """Placement takes a negative ratio, which Nova does not."""
    (of_class,) = class_sums([amount("a", "VCPU", 4, -2)]).values()
    assert (of_class.left, of_class.over) == (None, 1)


def test_a_host_may_be_in_several_groups() -> None:
    amounts = [amount("a", "VCPU", 1, 4), amount("b", "VCPU", 2, 4), amount("a", "PCPU", 0, 2)]
    groups = {"both": frozenset({"a", "b"}), "one": frozenset({"b"}), "none": frozenset[str]()}
    sums = group_sums(amounts, groups)
    assert {name: {c: s[:2] for c, s in of.items()} for name, of in sums.items()} == {
        "both": {"VCPU": (8, 3), "PCPU": (2, 0)},
        "one": {"VCPU": (4, 2)},
        "none": {},
    }
