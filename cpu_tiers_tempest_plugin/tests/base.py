"""Flavors with tiers, servers of these flavors, and what the servers hold in Placement."""

from collections.abc import Mapping
from typing import ClassVar

from tempest import config
from tempest.lib import exceptions
from tempest.lib.common.utils import data_utils, test_utils
from tempest.scenario import manager

CONF = config.CONF


class TierTest(manager.ScenarioTest):
    """A cloud whose hosts report shares.

    The servers have no network. A migration has a uuid, by which Placement knows it, since
    microversion 2.59.
    """

    compute_min_microversion = "2.59"
    placement_min_microversion = "1.4"
    sizes: ClassVar[dict[str, int]]
    """The vCPUs, the memory and the disk of each flavor: those of ``[compute] flavor_ref``."""

    @classmethod
    def setup_credentials(cls) -> None:
        """Have no network."""
        cls.set_network_resources()
        super().setup_credentials()

    @classmethod
    def resource_setup(cls) -> None:
        """Skip the tests if no host reports shares."""
        super().resource_setup()
        shares = CONF.cpu_tiers.resource_class
        providers = cls.os_admin.resource_providers_client
        try:
            found = providers.list_resource_providers(resources=f"{shares}:1")
        except exceptions.BadRequest as error:
            raise cls.skipException(f"Placement does not know {shares}") from error
        if not found["resource_providers"]:
            raise cls.skipException(f"no resource provider has an inventory of {shares}")
        like = cls.os_admin.flavors_client.show_flavor(CONF.compute.flavor_ref)["flavor"]
        cls.sizes = {key: int(like[key]) for key in ("vcpus", "ram", "disk")}

    def flavor(self, extra_specs: Mapping[str, str]) -> str:
        """Return the id of a new flavor."""
        client = self.os_admin.flavors_client
        name = data_utils.rand_name(prefix=CONF.resource_name_prefix, name="tier")
        flavor: str = client.create_flavor(name=name, **self.sizes)["flavor"]["id"]
        self.addCleanup(client.delete_flavor, flavor)
        if extra_specs:
            client.set_flavor_extra_spec(flavor, **extra_specs)
        return flavor

    def server(self, flavor: str) -> str:
        """Return the id of a new server, which is active."""
        server: str = self.create_server(flavor=flavor, networks="none")["id"]
        return server

    def holdings(self, consumer: str) -> dict[str, int]:
        """Return the shares of a server or of a migration, by resource provider."""
        shares = CONF.cpu_tiers.resource_class
        allocations = self.os_admin.placement_client.list_allocations(consumer)["allocations"]
        return {
            provider: allocation["resources"][shares]
            for provider, allocation in allocations.items()
            if shares in allocation["resources"]
        }

    def assert_shares(self, consumer: str, expected: int) -> None:
        """Expect shares of a server or of a migration, on all its providers together.

        Nova may release what a migration held a moment after the server is active.
        """
        test_utils.call_until_true(
            lambda: sum(self.holdings(consumer).values()) == expected,
            CONF.compute.build_timeout,
            CONF.compute.build_interval,
        )
        self.assertEqual(expected, sum(self.holdings(consumer).values()))

    def migration(self, server: str) -> str:
        """Return the uuid of the last migration of a server."""
        client = self.os_admin.migrations_client
        migrations = client.list_migrations(instance_uuid=server)["migrations"]
        uuid: str = max(migrations, key=lambda each: int(each["id"]))["uuid"]
        return uuid
