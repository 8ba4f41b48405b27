"""What shares are sold as, and what the kernel keeps of it, worked out by hand."""

import csv
import random
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.tiers.contenders import Contender, Slice
from cpu_tiers.tools.tiers.floor import floor_cpus
from cpu_tiers.tools.tiers.sold import Sale
from tests.draws import SEED
from tests.unit.tiers.sales import sale

PAGE = (Path(__file__).parents[3] / "docs" / "reference" / "entitlement.rst").read_text()


@pytest.mark.parametrize(
    ("shares", "ratio", "reserved", "per_share"),
    [
        pytest.param(100, 6.0, 0, Fraction(1, 600), id="a ratio R leaves an R-th"),
        pytest.param(100, 1.5, 0, Fraction(1, 150), id="a broken ratio"),
        # 50 of 100 are for the host: the other 50 are half of the CPU, not all of it.
        pytest.param(100, 2.0, 50, Fraction(1, 200), id="reserved shares make no share larger"),
    ],
)
def test_the_inventory_says_what_a_share_is_sold_as(
    shares: int, ratio: float, reserved: int, per_share: Fraction
) -> None:
    vcpu = Inventory(total=1, max_unit=1)
    of = Inventory(total=shares, max_unit=1, allocation_ratio=ratio, reserved=reserved)
    sold = Sale.of({VCPU: vcpu, VCPU_SHARES: of})
    assert sold is not None
    assert sold.cpus_per_share == per_share


@pytest.mark.parametrize(
    ("cpus", "total", "reserved", "for_guests", "overhead"),
    [
        # Four CPUs: processes of the host use one of them, 100 of 400 shares.
        pytest.param(4, 400, 100, Fraction(3), Fraction(0), id="processes of the host"),
        # One CPU: QEMU uses 20 % of the time of the vCPUs, 100 of 600 shares.
        pytest.param(1, 600, 100, Fraction(1), Fraction(1, 5), id="QEMU"),
    ],
)
def test_the_kernel_keeps_what_is_sold_with_reserved_shares(
    cpus: int, total: int, reserved: int, for_guests: Fraction, overhead: Fraction
) -> None:
    shares = Inventory(total=total, max_unit=total, reserved=reserved)
    sold = Sale.of({VCPU: Inventory(total=cpus, max_unit=cpus), VCPU_SHARES: shares})
    assert sold is not None
    assert sold.for_sale == total - reserved
    # Sold full, the kernel divides the CPUs of the guests by the weights of the guests, and QEMU
    # takes its part of what a guest gets.
    kernel = Fraction(100, total - reserved) * for_guests / (1 + overhead)
    assert kernel == sold.sold(100, vcpus=1)


def test_nothing_is_sold_without_shares_or_with_all_shares_reserved() -> None:
    vcpu, reserved = Inventory(total=1, max_unit=1), Inventory(total=9, max_unit=1, reserved=9)
    assert Sale.of({VCPU: vcpu}) is None
    assert Sale.of({VCPU: vcpu, VCPU_SHARES: reserved}) is None
    assert Sale.of({VCPU_SHARES: Inventory(total=9, max_unit=1)}) is None


def test_numa_nodes_add_up() -> None:
    node = {VCPU: Inventory(total=4, max_unit=4), VCPU_SHARES: Inventory(total=400, max_unit=400)}
    assert Sale.of_tree([{}, node, node]) == sale(8, 800)


@pytest.mark.parametrize(
    ("cpus", "shares", "claim", "vcpus", "sold", "promised"),
    [
        pytest.param(1, 600, 100, 1, Fraction(1, 6), Fraction(1, 6), id="one CPU keeps all"),
        pytest.param(1, 600, 600, 1, 1, 1, id="the whole host"),
        pytest.param(1, 100, 200, 1, 1, 1, id="more than the host, after a change"),
        # e = 100 x 65/64 / 2 = 50.78: 100 of 150.78
        pytest.param(2, 200, 100, 1, 1, Fraction(12800, 19300), id="Gold beside four of 25"),
        # e = 3100 x 65/64 / 8 = 393.55, 5/4 of it is 491.9: less than e + 100 = 493.55
        pytest.param(8, 3200, 100, 1, Fraction(1, 4), Fraction(51200, 252700), id="8 CPUs"),
        # e = 25500 x 65/64 / 64 = 404.66: 5/4 of it is 505.8, more than e + 100
        pytest.param(
            64, 25600, 100, 1, Fraction(1, 4), Fraction(1638400, 8287500), id="the imbalance"
        ),
    ],
)
def test_what_is_promised(
    cpus: int, shares: int, claim: int, vcpus: int, sold: Fraction, promised: Fraction
) -> None:
    for default_weight in (100, 1024):
        assert sale(cpus, shares).sold(claim, vcpus) == sold
        assert sale(cpus, shares).promised(claim, vcpus, default_weight) == promised


def rows() -> Iterable[dict[str, str]]:
    title = ".. csv-table:: CPUs that a vCPU of 100 shares is promised\n"
    block = PAGE.split(title, 1)[1].split("\n\n")
    lines = [block[0].strip().removeprefix(":header:"), *block[1].splitlines()]
    header, *cells = csv.reader((line.strip() for line in lines), skipinitialspace=True)
    return [dict(zip(header, row, strict=True)) for row in cells]


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"ratio {row['ratio']}")
def test_the_table_of_the_page(row: dict[str, str]) -> None:
    ratio = int(row["ratio"])
    assert f"{float(sale(1, 100 * ratio).sold(100, 1)):.3f}" == row["sold"]
    for name, cell in row.items():
        if name.endswith(("CPU", "CPUs")):
            cpus = int(name.split()[0])
            assert f"{float(sale(cpus, 100 * cpus * ratio).promised(100, 1)):.3f}" == cell


@pytest.mark.parametrize("default_weight", [100, 1024], ids=["v2", "v1"])
def test_no_host_that_is_sold_keeps_less(default_weight: int) -> None:
    """Draw servers until the shares are sold, with weights that cgroup v2 does not round."""
    draws = random.Random(SEED)
    for _ in range(40):
        cpus, ratio = draws.choice([1, 2, 3, 8]), draws.choice([1, 2, 4])
        left = shares = 100 * cpus * ratio
        guests = dict[str, Contender]()
        while left:
            vcpus = draws.choice([1, 1, 2, 4])
            claim = min(left, draws.choice([25, 50, 100]) * vcpus)
            threads = {frozenset(range(cpus)): vcpus}
            guests[f"{len(guests)}"] = Contender(weight=claim, threads=threads)
            left -= claim
        floors = floor_cpus({"": Slice.of_guests(guests, default_weight)})
        for name, guest in guests.items():
            (vcpus,) = guest.threads.values()
            promised = sale(cpus, shares).promised(guest.weight, vcpus, default_weight)
            assert floors[f"/{name}"] >= promised
