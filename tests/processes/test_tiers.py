"""A server of a tier, with all services as processes."""

import pytest

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, VCPU, VCPU_SHARES
from tests.processes.cloud import Cloud
from tests.processes.hosts import TWO_NODES

MULTIPLIER = "quota:cpu_shares_multiplier"


@pytest.fixture(scope="module")
def plain(cloud: Cloud) -> str:
    cloud.start_compute("plain", env=TWO_NODES)
    return "plain"


def test_a_tier_is_claimed_and_weighed(cloud: Cloud, plain: str) -> None:
    server = cloud.boot(cloud.flavor({MULTIPLIER: "100"}, vcpus=2))
    assert cloud.held(server) == {plain: {VCPU: 2, MEMORY_MB: 512, DISK_GB: 1, VCPU_SHARES: 200}}
    assert cloud.domain(server, plain).findtext("cputune/shares") == "200"
    silver = cloud.flavor({MULTIPLIER: "50"}, vcpus=3)
    cloud.act(server, {"resize": {"flavorRef": silver}}, "VERIFY_RESIZE")
    cloud.act(server, {"confirmResize": None}, "ACTIVE")
    assert cloud.held(server) == {plain: {VCPU: 3, MEMORY_MB: 512, DISK_GB: 1, VCPU_SHARES: 150}}
    assert cloud.domain(server, plain).findtext("cputune/shares") == "150"


def test_the_api_checks_a_multiplier(cloud: Cloud) -> None:
    with pytest.raises(AssertionError, match=r"400 .*quota:cpu_shares_multiplier"):
        cloud.flavor({MULTIPLIER: "gold"})
