"""Gold, silver and bronze servers in all operations of Nova, with every option on."""

from tests.nova import tiers
from tests.nova.cloud import SHARES
from tests.nova.tiers import CPUS, TIERS, resources

TestTiers = tiers.TestTiers


class TestReshape(tiers.Tiers):
    reports = False

    def test_servers_of_before(self) -> None:
        self.configure(query_placement_for_vcpu_shares=False)
        self.boot_all(gold="one", silver="two", bronze="three")
        for tier, server in self.servers.items():
            (held,) = self.held(server).values()
            assert {**held, SHARES: TIERS[tier].shares} == resources(tier)
            assert SHARES not in held
        self.reporting(True)
        for host in CPUS:
            self.restart(host)
        self.check_all(gold="one", silver="two", bronze="three")
        self.restart_scheduler(query_placement_for_vcpu_shares=True)
        server = self.boot(self.flavors["gold"])["id"]
        self.check(server, "gold", "two")  # 500/550/525
