"""What ``cpu-tiers host audit`` says while the change of a tier is pending on a host."""

import fixtures
import pytest
from nova.compute.rpcapi import ComputeAPI
from nova.virt.libvirt import config

from tests.nova.commands.host_commands import HostCommands, KeepsFlavor
from tests.nova.computes import SHARES
from tests.nova.tier_changes import TierChanges


class TestAudit(TierChanges):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(KeepsFlavor())
        self.flags(group="compute", cpu_shared_set="0-7")
        self.flags(cpu_allocation_ratio=1.0)
        self.commands = HostCommands(self)
        self.restart("one")
        # nova-api calls no host.
        self.useFixture(fixtures.MockPatchObject(ComputeAPI, "inject_network_info"))

    def test_a_higher_tier_is_pending(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        assert self.commands.audit(status=0) == {}
        self.resize(server, "gold")
        ((kind, finding),) = self.commands.audit(status=3).items()
        assert (kind, finding["uuid"]) == ("claim", server)
        assert finding["found"] == f"it requests 20 {SHARES}, and 200 is allocated to it"
        assert "the change is pending: nova-compute carries it out" in finding["do"]
        self.weights.refuses = True
        self.report(server)
        assert self.commands.audit(status=3).keys() == {"claim"}
        self.weights.refuses = False
        self.report(server)
        assert self.commands.audit(status=0) == {}
        self.check(server, "gold", weight=200, shares=200)

    @pytest.mark.skipif(
        not hasattr(config, "LibvirtConfigGuestMetaNovaFlavorExtraSpecs"),
        reason="Nova 31 writes no extra specs into the metadata: the weight alone tells the tier",
    )
    def test_a_lower_tier_that_libvirt_refuses_is_pending(self) -> None:
        """Nova's metadata have the new tier; weight and claim are those of the former tier."""
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        self.weights.refuses = True
        for _ in range(2):
            self.report(server)
            findings = self.commands.audit(status=3)
            assert findings.keys() == {"claim", "weight"}
            claim = findings["claim"]
            assert claim["uuid"] == findings["weight"]["uuid"] == server
            assert claim["found"] == f"it requests 20 {SHARES}, and 200 is allocated to it"
            assert "the change is pending: nova-compute carries it out" in claim["do"]
            assert self.domain_shares(server, "one") == "200"
        self.confirm(server)
        self.report(server)
        assert self.shares_of(server) == 200  # as long as the kernel gives the guest as much
        self.weights.refuses = False
        self.report(server)
        assert self.commands.audit(status=0) == {}
        self.check(server, "bronze", weight=20, shares=20)

    def test_until_a_lower_tier_is_in_force_the_guest_has_all_of_the_former(self) -> None:
        """Weight, metadata and claim are those of the former tier: nobody is short."""
        server = self.boot_on("one", self.flavors["gold"])
        self.resize(server, "bronze")
        assert self.commands.audit(status=0) == {}
        assert self.shares_of(server) == 200
        assert self.events_of(server) == [("live_tier_change", None, None)]
        self.report(server)
        assert self.commands.audit(status=0) == {}
        self.check(server, "bronze", weight=20, shares=20)
