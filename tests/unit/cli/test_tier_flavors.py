"""Which flavor stands for a tier, worked out by hand."""

from pathlib import Path
from typing import NoReturn

import pytest

from cpu_tiers.conf.read import read_config
from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud.tier_flavors import TierFlavor, tier_flavors
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.server_request import request_of
from cpu_tiers.tools.sold.sold import SoldPart
from tests.unit.compute_api.catalog import Catalog

GOLD = {"quota:cpu_shares_multiplier": "100"}


def nobody() -> NoReturn:
    pytest.fail("Placement is asked")


def chosen(
    tmp_path: Path, *flavors: tuple[str, int, dict[str, str]], servers: tuple[int, ...] = ()
) -> list[TierFlavor]:
    """Return the flavors that stand for tiers; each server has so many vCPUs."""
    bodies = [
        {"id": name, "name": name, "vcpus": vcpus, "ram": 512, "extra_specs": specs}
        for name, vcpus, specs in flavors
    ]
    path = "/flavors/detail?is_public=None&limit=1000&sort_key=flavorid"
    cloud = CloudSource(Catalog({("compute", path): {"flavors": bodies}}).services, nobody, None)
    (tmp_path / "nova.conf").touch()
    conf = read_config([str(tmp_path / "nova.conf")])
    sold = [
        SoldPart(f"s{number}", "", "h", "h", name, amount)
        for number, vcpus in enumerate(servers)
        for name, amount in (("VCPU", vcpus), ("MEMORY_MB", 512), ("DISK_GB", 7))
    ]
    return tier_flavors(cloud, conf, request_of(conf), sold=sold)


@pytest.mark.parametrize(
    ("servers", "name"),
    [
        pytest.param((), "small", id="the smallest"),
        pytest.param((2, 4, 4), "large", id="the most common, whatever its disk"),
        pytest.param((2, 4), "small", id="of equally common flavors the smallest"),
        pytest.param((1, 1, 1), "small", id="never a flavor with a condition of its own"),
    ],
)
def test_the_representative_of_a_tier(tmp_path: Path, servers: tuple[int, ...], name: str) -> None:
    avx = {**GOLD, "trait:HW_CPU_X86_AVX512VNNI": "required"}
    flavors = (("avx", 1, avx), ("large", 4, GOLD), ("small", 2, GOLD))
    (gold,) = chosen(tmp_path, *flavors, servers=servers)
    assert (gold.tier, gold.flavor.name, gold.note) == ("multiplier 100", name, " (for 3 flavors)")


def test_a_tier_without_a_plain_flavor_says_so(tmp_path: Path) -> None:
    gold, plain = chosen(tmp_path, ("ssd", 1, {**GOLD, "ssd": "true"}), ("plain", 1, {}))
    assert (gold.flavor.name, gold.note) == ("ssd", " (with conditions of its own)")
    assert (plain.tier, plain.flavor.name, plain.note) == ("no tier", "plain", "")


def test_faulty_flavors_are_named_beside_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    both = {**GOLD, "quota:cpu_shares": "25"}
    (plain,) = chosen(tmp_path, ("both", 1, both), ("plain", 1, {}))
    assert plain.flavor == Flavor(name="plain", vcpus=1, memory_mb=512)
    assert "A flavor is left out: flavor both, extra specs" in caplog.text
    with pytest.raises(InvalidInput, match="no flavors"):
        chosen(tmp_path, ("both", 1, both))
