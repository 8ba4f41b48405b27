"""Who lacks shares, and who finds no room for them."""

from collections.abc import Iterable, Mapping

import pytest

from cpu_tiers.accounting.holdings import ConsumerId, Holdings, Portion, ProviderName
from cpu_tiers.accounting.missing_shares import (
    Addition,
    Owner,
    Shortfall,
    additions_of,
    divide_by_vcpu,
    missing_shares,
)
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.inventory import Inventory

SHARES = "CUSTOM_VCPU_SHARES"
MULTIPLIER = "quota:cpu_shares_multiplier"
PLAIN = "quota:cpu_shares"
C = ConsumerId("c")
DEDICATED = Image(name="rt", properties={"hw_cpu_policy": "dedicated"})


def owner(specs: Mapping[str, str], *, vcpus: int = 2, image: Image | None = None) -> Owner:
    flavor = Flavor(name="tier", vcpus=vcpus, memory_mb=512, extra_specs=specs)
    return Owner(name="server web (1)", server="1", flavor=flavor, image=image)


@pytest.mark.parametrize(
    ("specs", "vcpus", "amount"),
    [
        pytest.param({MULTIPLIER: "100"}, 2, 200, id="a multiplier: 100 x 2"),
        pytest.param({MULTIPLIER: "2.5"}, 3, 8, id="rounded once, half up: 2.5 x 3 = 7.5"),
        pytest.param({PLAIN: "70"}, 3, 70, id="shares of the domain as they stand"),
        pytest.param({MULTIPLIER: "5", f"resources:{SHARES}": "7"}, 2, 7, id="the flavor's own"),
        pytest.param({MULTIPLIER: "5", f"resources:{SHARES}": "0"}, 2, None, id="its own 0"),
        pytest.param({}, 2, None, id="no tier"),
        pytest.param({MULTIPLIER: "0.1"}, 4, None, id="0.1 x 4 = 0.4 is no weight"),
        pytest.param({MULTIPLIER: "gold"}, 2, None, id="garbage"),
        pytest.param({MULTIPLIER: "1", PLAIN: "1"}, 2, None, id="both specs"),
        pytest.param({PLAIN: "16384"}, 2, None, id="a weight above 10000"),
        pytest.param({PLAIN: "70", "hw:cpu_policy": "dedicated"}, 2, None, id="dedicated"),
        pytest.param(
            {MULTIPLIER: "5", "hw:cpu_realtime": "x"},
            2,
            10,
            id="faulty CPUs: the VCPU held decides",
        ),
        pytest.param(
            {MULTIPLIER: "5", "trait:A": "x"}, 2, 10, id="a faulty trait, as Nova overlooks it"
        ),
    ],
)
def test_a_flavor_decides_the_missing_shares(
    specs: Mapping[str, str], vcpus: int, amount: int | None
) -> None:
    shortfalls = missing_shares({C: {"VCPU": vcpus}}, {C: owner(specs, vcpus=vcpus)})
    assert [shortfall.shares for shortfall in shortfalls] == ([] if amount is None else [amount])


@pytest.mark.parametrize(
    "held",
    [
        pytest.param({"VCPU": 2, SHARES: 200}, id="has the shares of the flavor"),
        pytest.param({"VCPU": 2, SHARES: 1}, id="has another amount, which is not ours to change"),
        pytest.param({"PCPU": 2}, id="has no shared CPU of this provider"),
        pytest.param({"DISK_GB": 2}, id="has its CPUs elsewhere"),
    ],
)
def test_the_held_vcpus_decide_whether_shares_are_missing(held: Mapping[str, int]) -> None:
    assert missing_shares({C: held}, {C: owner({MULTIPLIER: "100"})}) == ()


def test_an_image_can_make_a_server_dedicated() -> None:
    pinned = owner({MULTIPLIER: "100"}, image=DEDICATED)
    assert missing_shares({C: {"VCPU": 2}}, {C: pinned}) == ()


def test_a_consumer_without_a_flavor_lacks_nothing() -> None:
    assert missing_shares({C: {"VCPU": 2}}, {}) == ()


def shortfall(consumer: str, amount: int) -> Shortfall:
    return Shortfall(consumer=ConsumerId(consumer), owner=owner({}), resources={SHARES: amount})


def test_demands_are_divided_as_vcpu_is_held() -> None:
    holdings = Holdings.by_name(
        {
            "a": {"n0": {"VCPU": 1}, "n1": {"VCPU": 3}, "n2": {"PCPU": 4}},
            "b": {"n1": {"VCPU": 2}},
            "c": {"n0": {"VCPU": 9}, "n1": {"VCPU": 1}},
        }
    )
    # 10 by 1 and 3 is 2.5 and 7.5: one unit is left, the first of equals gets it
    divided = divide_by_vcpu((shortfall("a", 10), shortfall("b", 7), shortfall("c", 1)), holdings)
    assert divided == {
        "n0": (shortfall("a", 3), shortfall("c", 1)),  # 0.9 and 0.1 of 1
        "n1": (shortfall("a", 7), shortfall("b", 7)),
    }


def additions(
    inventories: Mapping[str, Inventory], used: Mapping[str, int], shortfalls: Iterable[Shortfall]
) -> tuple[Addition, ...]:
    one = ProviderName("one")
    return additions_of({one: inventories}, Portion({one: used}), {one: shortfalls})


def refused(shares: Inventory, used: int, *shortfalls: Shortfall) -> list[str]:
    found = additions({SHARES: shares}, {"VCPU": 2, SHARES: used}, shortfalls)
    return [fault.given for addition in found for fault in addition.faults]


def test_servers_up_to_the_capacity_are_admitted() -> None:
    # (100 - 20) x 2.0 = 160 = 60 + 40 + 60
    shares = Inventory(total=100, reserved=20, max_unit=100, allocation_ratio=2.0)
    assert refused(shares, 60, shortfall("a", 60), shortfall("b", 40)) == []


def test_the_largest_server_without_room_is_named_in_any_order() -> None:
    shares = Inventory(total=100, max_unit=100)  # 100 - 30 = 70 are left
    assert refused(shares, 30, shortfall("a", 60), shortfall("b", 40), shortfall("c", 20)) == [
        f"asks one for 60 {SHARES}: only 10 of 100 are left"  # 70 - 20 - 40
    ]


def test_a_server_may_not_exceed_max_unit() -> None:
    shares = Inventory(total=50, max_unit=50, allocation_ratio=4.0)  # 200
    assert refused(shares, 0, shortfall("a", 60), shortfall("b", 50)) == [
        f"asks one for 60 {SHARES}: one server may have at most 50 (max_unit)"
    ]


def test_units_that_an_operator_has_given_count() -> None:
    shares = Inventory(total=400, max_unit=400, min_unit=50, step_size=25)
    assert refused(shares, 0, shortfall("a", 25), shortfall("b", 60), shortfall("c", 75)) == [
        f"asks one for 25 {SHARES}: less than min_unit 50",
        f"asks one for 60 {SHARES}: not a multiple of step_size 25",
    ]


def test_nothing_is_left_where_too_much_is_held() -> None:
    shares = Inventory(total=50, max_unit=50)
    assert refused(shares, 80, shortfall("a", 10)) == [
        f"asks one for 10 {SHARES}: only 0 of 50 are left"
    ]


def test_a_server_without_holdings_needs_room_for_every_class() -> None:
    inventories = {
        "VCPU": Inventory(total=4, max_unit=4),
        "MEMORY_MB": Inventory(total=2048, reserved=512, max_unit=2048),
        SHARES: Inventory(total=400, max_unit=400),
    }
    used = {"VCPU": 1, "MEMORY_MB": 1024, SHARES: 100}
    wants = [
        {"VCPU": 1, "MEMORY_MB": 512, SHARES: 100},  # the 512 MiB that are left
        {"VCPU": 2, "MEMORY_MB": 512, SHARES: 200},
        {"VCPU": 1, "VGPU": 1, SHARES: 300},
    ]
    shortfalls = [
        Shortfall(consumer=ConsumerId(c), owner=owner({}), resources=want)
        for c, want in zip("abc", wants, strict=True)
    ]
    assert [dict(addition.limits) for addition in additions(inventories, used, shortfalls)] == [
        {},
        {"one": "512 MEMORY_MB: only 0 of 1536 are left"},
        {"one": f"1 VGPU: there is no inventory of it; 300 {SHARES}: only 200 of 400 are left"},
    ]
