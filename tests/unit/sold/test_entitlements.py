"""The CPUs of servers beside what their tiers promise, worked out by hand."""

from decimal import Decimal

import pytest

from cpu_tiers.extra_specs.shares import Shares
from cpu_tiers.tools.cloud_model import SimulatedCloud
from cpu_tiers.tools.sold.entitlements import PlacedServer, tier_floors
from tests.unit.cloud_model.clouds import provider

HUNDRED = Shares(amount=Decimal(100), per_vcpu=True)
FIFTY = Shares(amount=Decimal(50), per_vcpu=True)


def server(
    shares: Shares | None, host: str = "a", vcpus: int = 1, pinned: int = 0
) -> PlacedServer:
    amounts = {"VCPU": vcpus, "PCPU": pinned}
    return PlacedServer(
        allocations={"a": {name: amount for name, amount in amounts.items() if amount}},
        tier="" if shares is None else str(shares.amount),
        shares=shares,
    )


def cloud(cpus: int, shares: int) -> SimulatedCloud:
    return SimulatedCloud([provider("a", None, VCPU=cpus, PCPU=4, CUSTOM_VCPU_SHARES=shares)])


def test_a_host_with_a_single_cpu_that_is_not_oversold() -> None:
    """100 shares are a CPU: each server of 50 is promised a half, and gets a half."""
    floors = tier_floors(cloud(1, 100), [server(FIFTY), server(FIFTY)])
    assert list(floors) == ["50"]
    of_tier = floors["50"]
    assert (of_tier.servers, of_tier.floor_kept, of_tier.entitlement_kept) == (2, 2, 2)
    assert (of_tier.least_floor, of_tier.least_entitlement) == (1.0, 1.0)


def test_an_oversold_host() -> None:
    """Of 250 shares on a CPU, 100 are promised a CPU and get 100/250, 50 get 50/250 of 1/2."""
    floors = tier_floors(cloud(1, 100), [server(HUNDRED), server(HUNDRED), server(FIFTY)])
    assert floors["100"].least_floor == pytest.approx(0.4)
    assert floors["50"].least_entitlement == pytest.approx(0.4)
    assert [of.floor_kept for of in floors.values()] == [0, 0]


def test_the_floor_is_less_than_the_entitlement() -> None:
    """4 servers of 100 on 2 CPUs, promised 1/2 each: the floor is 100 / (5/4 x 150), or 8/15.

    The even load of the 3 others is 150: the load of a CPU is at most max(150 + 100, 187.5).
    """
    floors = tier_floors(cloud(2, 400), [server(HUNDRED)] * 4)
    assert floors["100"].least_entitlement == pytest.approx(1.0)
    assert floors["100"].least_floor == pytest.approx((100 / 250) / 0.5)
    assert (floors["100"].floor_kept, floors["100"].entitlement_kept) == (0, 4)


def test_a_server_without_a_tier_takes_from_the_tiers() -> None:
    """A weight of 100 beside 50 on a CPU: 50/150 of the CPU, of 1/2 promised."""
    floors = tier_floors(cloud(1, 100), [server(FIFTY), server(None)])
    assert list(floors) == ["50"]
    assert floors["50"].least_entitlement == pytest.approx(2 / 3)


def test_dedicated_vcpus_do_not_compete_for_shared_cpus() -> None:
    """A mixed server of 1 + 1 vCPUs beside a shared server: 1/2 + 1 of 1/2 + 1 promised."""
    floors = tier_floors(cloud(1, 100), [server(FIFTY, pinned=1), server(FIFTY)])
    assert (floors["50"].least_entitlement, floors["50"].servers) == (1.0, 2)
    pinned = server(FIFTY, vcpus=0, pinned=2)  # promises no shared CPU
    assert tier_floors(cloud(1, 100), [pinned]) == {}


def test_no_promise_without_shares_and_never_more_than_the_vcpus() -> None:
    without = SimulatedCloud([provider("a", None, VCPU=2)])
    assert tier_floors(without, [server(HUNDRED)]) == {}
    # 10 shares are a CPU, so 100 would be ten CPUs for one vCPU
    assert tier_floors(cloud(4, 40), [server(HUNDRED)])["100"].least_entitlement == 1.0


def test_a_resident_weighs_by_the_claim() -> None:
    resident = PlacedServer.resident({"a": {"VCPU": 2, "CUSTOM_VCPU_SHARES": 100}})
    assert resident.shares == FIFTY
    assert PlacedServer.resident({"a": {"VCPU": 2}}).shares is None
    # 50 + 50 beside 50, on a CPU: 1/3 of 1/2 promised
    floors = tier_floors(cloud(1, 100), [server(FIFTY), resident])
    assert floors["50"].least_entitlement == pytest.approx(2 / 3)


@pytest.mark.parametrize("cpus", [65_537, 2**31 - 1])
def test_a_host_of_more_cpus_than_linux_has_no_floors(cpus: int) -> None:
    assert tier_floors(cloud(cpus, 100), [server(FIFTY)]) == {}


def test_a_server_of_more_dedicated_cpus_than_linux_has_no_floors() -> None:
    huge = PlacedServer(allocations={"a": {"PCPU": 2**31 - 1}})
    assert tier_floors(cloud(4, 100), [server(FIFTY), huge]) == {}
