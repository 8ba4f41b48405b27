"""A resize between two tiers, carried out on the running server."""

import pytest
from nova.tests.functional.api.client import OpenStackApiException

from tests.nova.tier_changes import TierChanges


class TestTierChange(TierChanges):
    def test_up_and_confirm(self) -> None:
        server = self.boot_on("one", self.flavors["bronze"])
        connection = self.computes["one"].driver._host.get_connection()
        domain = connection.lookupByUUIDString(server)
        self.check(server, "bronze", weight=20, shares=20)
        self.resize(server, "gold")
        self.check(server, "gold", weight=200, shares=200)
        assert self.events_of(server) == [("live_tier_change", "Success", None)]
        assert "<nova:flavor name=\"gold\"" in self.weights.metadata[server]
        self.confirm(server)
        self.check(server, "gold", weight=200, shares=200)
        assert connection.lookupByUUIDString(server) is domain
        assert domain.info()[0] == 1  # running
