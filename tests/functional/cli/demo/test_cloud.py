"""The cloud of the demo on a real Placement."""

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.demo import DemoCloud
from cpu_tiers.tools.placement.client import PlacementClient

SHARES = {"gold": 100, "silver": 50, "bronze": 25}


def test_the_hosts_are_filled_until_no_tier_fits(embedded: PlacementClient) -> None:
    cloud = DemoCloud(embedded)
    servers = list(cloud.fill())
    refused = [server.flavor.name for server in servers if not server.host]
    assert sorted(refused) == sorted(SHARES)  # each tier once, and never asked for again
    for host in cloud.hosts:
        usage = cloud.usage(host)
        tiers = [server.flavor.name for server in servers if server.host == host]
        assert usage["VCPU"][0] == len(tiers)
        assert usage[VCPU_SHARES][0] == sum(SHARES[tier] for tier in tiers)
        assert all(used <= capacity for used, capacity in usage.values())
        # no room for a bronze, the smallest: 1 VCPU and 25 shares
        assert (
            usage["VCPU"][0] == usage["VCPU"][1]
            or usage[VCPU_SHARES][1] - usage[VCPU_SHARES][0] < 25
        )


def test_the_weigher_decides(embedded: PlacementClient) -> None:
    for server in DemoCloud(embedded).fill():
        if server.host:
            best = max(score.score for score in server.scores.values())
            assert server.scores[server.host].score == best
