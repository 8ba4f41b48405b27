import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.occupancy import fitting_servers
from cpu_tiers.tools.tiers.tier import requested_amounts

SHARED = CpuSet(range(4))
PINNED = CpuSet({9})


@pytest.mark.parametrize(
    ("shares", "extra_specs", "sets", "vcpus", "shares_requested"),
    [
        pytest.param(200, None, (None, SHARED), 2, 200, id="all vCPUs are shared"),
        pytest.param(200, None, (PINNED, PINNED), 0, 0, id="none is"),
        # 250 / 2 x 1
        pytest.param(250, None, (PINNED, SHARED), 1, 125, id="mixed"),
        # 25 / 2 x 1 = 12.5, rounded half up
        pytest.param(25, None, (PINNED, SHARED), 1, 13, id="mixed, rounded half up"),
        pytest.param(
            250, {"quota:cpu_shares": "250"}, (PINNED, SHARED), 1, 250, id="shares of the domain"
        ),
        pytest.param(
            None, {"quota:cpu_shares_multiplier": "50"}, (None, None), 2, 100, id="not set yet"
        ),
        pytest.param(None, None, (None, None), 2, 0, id="untiered"),
        pytest.param(100, {}, (None,), 1, 0, id="the weight was set by hand"),
    ],
)
def test_requested_amounts(
    shares: int | None,
    extra_specs: dict[str, str] | None,
    sets: tuple[CpuSet | None, ...],
    vcpus: int,
    shares_requested: int,
) -> None:
    domain = Domain(name="g", shares=shares, vcpu_sets=sets, extra_specs=extra_specs)
    assert requested_amounts(domain, SHARED) == {VCPU: vcpus, VCPU_SHARES: shares_requested}


# (4 - 1) x 2 = 6 VCPU and (400 - 100) x 2 = 600 VCPU_SHARES
INVENTORIES = {
    VCPU: Inventory(total=4, reserved=1, max_unit=4, allocation_ratio=2.0),
    VCPU_SHARES: Inventory(total=400, reserved=100, max_unit=400, allocation_ratio=2.0),
}


@pytest.mark.parametrize(
    ("vcpus", "shares", "used", "servers"),
    [
        pytest.param(1, 100, (0, 0), 6, id="both run out"),
        pytest.param(1, 150, (0, 0), 4, id="shares run out"),
        pytest.param(2, 50, (1, 0), 2, id="vCPUs run out: 5 left, 2 each"),
        pytest.param(1, 0, (0, 600), 6, id="no shares asked for, none needed"),
        pytest.param(1, 25, (6, 150), 0, id="full"),
        pytest.param(1, 25, (9, 0), 0, id="overfull"),
        pytest.param(4, 401, (0, 0), 0, id="more than one server may have"),
    ],
)
def test_fitting_servers(vcpus: int, shares: int, used: tuple[int, int], servers: int) -> None:
    amounts, taken = {VCPU: vcpus, VCPU_SHARES: shares}, {VCPU: used[0], VCPU_SHARES: used[1]}
    assert fitting_servers(amounts, INVENTORIES, taken) == servers


@pytest.mark.parametrize(("vcpus", "servers"), [(1, 0), (2, 4), (3, 0), (4, 2), (10, 0)])
def test_the_units_of_a_claim(vcpus: int, servers: int) -> None:
    """A claim has 2, 4, 6 or 8 of the 8 VCPU."""
    inventory = Inventory(total=8, min_unit=2, max_unit=8, step_size=2)
    assert fitting_servers({VCPU: vcpus}, {VCPU: inventory}, {}) == servers


def test_no_server_fits_without_a_shared_cpu() -> None:
    assert fitting_servers({VCPU: 1}, {}, {}) == 0
