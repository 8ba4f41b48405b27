"""What a server with a tier holds in Placement, from its creation over its moves.

Spec: cpu-performance-service-levels, "Testing": a flavor with the extra specs, and the
allocations of its servers.
"""

from tempest import config
from tempest.common import waiters
from tempest.lib import decorators, exceptions

from cpu_tiers_tempest_plugin.tests.base import TierTest

CONF = config.CONF


class PairTest(TierTest):
    """Tiers by a pair of extra specs that Nova itself understands: the weight and the claim."""

    def tiers(self) -> list[tuple[str, int]]:
        """Return a new flavor of each tier, and the shares that a server claims."""
        shares = [int(each) * self.sizes["vcpus"] for each in CONF.cpu_tiers.tiers.values()]
        return [(self.flavor(self.extra_specs(each)), each) for each in shares]

    def extra_specs(self, shares: int) -> dict[str, str]:
        """Return the extra specs by which a server gets shares."""
        claim = f"resources:{CONF.cpu_tiers.resource_class}"
        return {"quota:cpu_shares": str(shares), claim: str(shares)}

    @decorators.idempotent_id("5b9a7f0e-3c52-4b86-9d3f-64a1e0c7d281")
    def test_allocation_of_each_tier(self) -> None:
        """A server of each tier claims the shares of a vCPU times the vCPUs of its flavor."""
        for flavor, shares in self.tiers():
            server = self.server(flavor)
            self.assert_shares(server, shares)
            self.servers_client.delete_server(server)
            waiters.wait_for_server_termination(self.servers_client, server)
            self.assert_shares(server, 0)

    def resized(self) -> tuple[str, str, int, int]:
        """Return a server that waits for the confirmation of a resize.

        Returned are the server, its migration, and the shares of the old and of the new tier.
        """
        self.skip_without_resize()
        (old_flavor, old), (new_flavor, new), *_ = self.tiers()
        server = self.server(old_flavor)
        self.resize(server, new_flavor)
        self.assert_shares(server, new)
        return server, self.migration(server), old, new

    @decorators.idempotent_id("0d2f6b48-7e19-4a53-8c05-f3b92d61a7e4")
    def test_resize_and_confirm(self) -> None:
        """Until the resize is confirmed, the migration holds the shares of the old tier."""
        server, migration, old, new = self.resized()
        self.assert_shares(migration, old)
        self.servers_client.confirm_resize_server(server)
        waiters.wait_for_server_status(self.servers_client, server, "ACTIVE")
        self.assert_shares(server, new)
        self.assert_shares(migration, 0)

    @decorators.idempotent_id("c84e1a95-26d7-4f30-b1b8-0e57d9f3462c")
    def test_resize_and_revert(self) -> None:
        """The server has the shares of its old tier again, and the migration has none."""
        server, migration, old, _ = self.resized()
        self.servers_client.revert_resize_server(server)
        waiters.wait_for_server_status(self.servers_client, server, "ACTIVE")
        self.assert_shares(server, old)
        self.assert_shares(migration, 0)

    @decorators.idempotent_id("e7135d0c-98b4-4c6f-a2e1-5d40c8f27b93")
    def test_live_migration(self) -> None:
        """The server holds its shares on the new host, and none on the old host."""
        if not CONF.compute_feature_enabled.live_migration:
            raise self.skipException("[compute-feature-enabled] live_migration is off")
        if CONF.compute.min_compute_nodes < 2:
            raise self.skipException("[compute] min_compute_nodes is less than 2")
        (flavor, shares), *_ = self.tiers()
        server = self.server(flavor)
        before = self.holdings(server)
        admin = self.os_admin.servers_client
        admin.live_migrate_server(server, host=None, block_migration="auto")
        waiters.wait_for_server_status(admin, server, "ACTIVE")
        self.assert_shares(server, shares)
        self.assertFalse(before.keys() & self.holdings(server).keys())
        self.assert_shares(self.migration(server), 0)

    def resize(self, server: str, flavor: str) -> None:
        """Resize a server, and wait until the resize can be confirmed."""
        self.servers_client.resize_server(server, flavor)
        waiters.wait_for_server_status(self.servers_client, server, "VERIFY_RESIZE")

    def skip_without_resize(self) -> None:
        """Skip the test in a cloud that does not resize."""
        if not CONF.compute_feature_enabled.resize:
            raise self.skipException("[compute-feature-enabled] resize is off")


class MultiplierTest(PairTest):
    """The same by one extra spec, the shares of a vCPU, which nova-scheduler translates."""

    @classmethod
    def skip_checks(cls) -> None:
        """Skip all tests in a cloud that does not translate the extra spec."""
        super().skip_checks()
        if not CONF.cpu_tiers.multiplier:
            raise cls.skipException("[cpu_tiers] multiplier is off")

    def extra_specs(self, shares: int) -> dict[str, str]:
        """Return the extra spec by which a server gets shares."""
        return {"quota:cpu_shares_multiplier": str(shares // self.sizes["vcpus"])}


class RefusalTest(TierTest):
    """A flavor that contradicts itself has no server."""

    @classmethod
    def skip_checks(cls) -> None:
        """Skip all tests in a cloud that accepts such flavors."""
        super().skip_checks()
        if not CONF.cpu_tiers.refuse_faulty_flavors:
            raise cls.skipException("[cpu_tiers] refuse_faulty_flavors is off")

    def contradiction(self) -> str:
        """Return a new flavor with two weights."""
        return self.flavor({"quota:cpu_shares": "100", "quota:cpu_shares_multiplier": "50"})

    @decorators.attr(type="negative")
    @decorators.idempotent_id("3f60b8d2-51ca-4e97-860d-a9c4e2f718b5")
    def test_boot(self) -> None:
        """nova-api answers 400."""
        self.assertRaises(exceptions.BadRequest, self.server, self.contradiction())

    @decorators.attr(type="negative")
    @decorators.idempotent_id("92c7d4e1-0b3a-4d68-b5f9-17e86a0c3d54")
    def test_resize(self) -> None:
        """nova-api answers 400, and the server stays active."""
        if not CONF.compute_feature_enabled.resize:
            raise self.skipException("[compute-feature-enabled] resize is off")
        server = self.server(self.flavor({}))
        resize = self.servers_client.resize_server
        self.assertRaises(exceptions.BadRequest, resize, server, self.contradiction())
        shown = self.servers_client.show_server(server)["server"]
        self.assertEqual("ACTIVE", shown["status"])
