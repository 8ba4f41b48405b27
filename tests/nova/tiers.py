"""Gold, silver and bronze servers in all operations of Nova, with every option on.

Each check looks at the chosen host, the allocations of the server, and the weight in the domain
XML.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.cloud import MULTIPLIER, SHARES, WEIGHER
from tests.nova.computes import Computes


class Tier(NamedTuple):
    """A flavor of the spec's configuration example, with 3 vCPUs.

    The disk is always 10 GiB, because Nova refuses a resize to a smaller disk.
    """

    multiplier: str
    memory_mb: int
    shares: int


TIERS = {
    "gold": Tier("100.0", 4096, shares=300),  # 100 x 3
    "silver": Tier("50.0", 2048, shares=150),  # 50 x 3
    "bronze": Tier("25.0", 1024, shares=75),  # 25 x 3
}
CPUS = {"one": 8, "two": 7, "three": 6}  # so 800, 700 and 600 shares


class Tiers(LibvirtMigrationMixin, Computes):
    """Three hosts; only shares count, so the host with the most free shares is chosen.

    The score is (1 - requested / free + 0) / 2, which is highest on the host with the most free.
    """

    CAST_AS_CALL = False
    microversion = "latest"
    reports = True
    weighers: tuple[str, ...] = (WEIGHER,)
    scheduler_options: ClassVar[Mapping[str, Any]] = {
        "query_placement_for_vcpu_shares": True,
        "resource_provider_weight_multiplier": 1.0,
        "resource_provider_resources": [SHARES],
        "resource_provider_traits": ["CUSTOM_NONE"],
    }

    def setUp(self) -> None:
        super().setUp()
        self.flags(initial_cpu_allocation_ratio=1.0)
        virt = "nova.virt.libvirt"
        for function, replacement in (
            (f"{virt}.host.Host.get_online_cpus", cpus_of),
            (f"{virt}.driver.LibvirtDriver.migrate_disk_and_power_off", lambda *_, **__: "{}"),
        ):
            self.useFixture(fixtures.MonkeyPatch(function, replacement))
        self.reporting(self.reports)
        for host in CPUS:
            self.start_host(host)
        self.flavors = {
            name: self._create_flavor(
                name=name,
                vcpu=3,
                memory_mb=tier.memory_mb,
                disk=10,
                ephemeral=0,
                extra_spec={MULTIPLIER: tier.multiplier},
            )
            for name, tier in TIERS.items()
        }

    def check(self, server: str, tier: str, host: str) -> None:
        """Check the host, the allocations and the weight of a server."""
        assert self.host_of({"id": server}) == host
        assert self.held(server) == {host: resources(tier)}
        assert self.domain_shares(server, host) == str(TIERS[tier].shares)

    def check_all(self, **hosts: str) -> None:
        """Check the three servers, each in its first tier."""
        for tier, host in hosts.items():
            self.check(self.servers[tier], tier, host)

    def boot_all(self, **hosts: str) -> None:
        """Boot a server of each tier, on a named host or by the choice of the scheduler."""
        self.servers = {
            tier: self.boot(flavor, **({"host": hosts[tier]} if hosts else {}))["id"]
            for tier, flavor in self.flavors.items()
        }


def cpus_of(host: Any) -> set[int]:
    """Return the CPUs of a host; Nova's tests have the same number for all hosts."""
    return set(range(CPUS[host.get_connection().getHostname()]))


def resources(tier: str) -> dict[str, int]:
    """Return the allocations of a server of a tier."""
    _, memory_mb, shares = TIERS[tier]
    return {"VCPU": 3, "MEMORY_MB": memory_mb, "DISK_GB": 10, SHARES: shares}


class TestTiers(Tiers):
    """All operations. The free shares of the hosts are beside each step, as one/two/three."""

    def setUp(self) -> None:
        super().setUp()
        self.prepare()
        self.boot_all()  # gold sees 800/700/600, silver 500/700/600, bronze 500/550/600
        self.check_booted()

    def prepare(self) -> None:
        """Change the hosts before the first server boots."""

    def check_booted(self) -> None:
        self.check_all(gold="one", silver="two", bronze="three")  # 500/550/525 are left

    def check_moved(self, tier: str, was: str, host: str, now: str | None = None) -> None:
        """Check a server that waits for a confirm, and the allocations of its migration."""
        server = self.servers[tier]
        self.check(server, now or tier, host)
        migration = self.get_migration_uuid_for_instance(server)
        assert self.held(migration) == {was: resources(tier)}

    def confirm(self, tier: str) -> None:
        server = self.servers[tier]
        migration = self.get_migration_uuid_for_instance(server)
        self._confirm_resize({"id": server})
        assert self.held(migration) == {}

    def resize(self, tier: str, was: str, to: str, host: str) -> None:
        self._resize_server({"id": self.servers[tier]}, self.flavors[to])
        self.check_moved(tier, was, host, to)

    def migrate(self, tier: str, was: str, host: str) -> None:
        self._migrate_server({"id": self.servers[tier]})
        self.check_moved(tier, was, host)

    def revert(self, tier: str) -> None:
        self._revert_resize({"id": self.servers[tier]})
        self.check_booted()

    def test_resize_to_another_tier_and_confirm(self) -> None:
        self.resize("gold", "one", "silver", "two")  # -/550/525
        self.confirm("gold")
        self.check(self.servers["gold"], "silver", "two")
        self.resize("silver", "two", "bronze", "one")  # 800/-/525
        self.confirm("silver")
        self.check(self.servers["silver"], "bronze", "one")
        self.resize("bronze", "three", "gold", "one")  # 725/550/-
        self.confirm("bronze")
        self.check(self.servers["bronze"], "gold", "one")

    def test_resize_to_another_tier_and_revert(self) -> None:
        self.resize("gold", "one", "silver", "two")  # -/550/525
        self.revert("gold")
        self.resize("silver", "two", "bronze", "three")  # 500/-/525
        self.revert("silver")
        self.resize("bronze", "three", "gold", "two")  # 500/550/-
        self.revert("bronze")

    def test_cold_migration(self) -> None:
        self.migrate("gold", "one", "two")  # -/550/525
        self.confirm("gold")
        self.migrate("silver", "two", "one")  # 800/-/525
        self.confirm("silver")
        self.migrate("bronze", "three", "one")  # 650/400/-
        self.confirm("bronze")
        self.check_all(gold="two", silver="one", bronze="one")

    def test_cold_migration_and_revert(self) -> None:
        self.migrate("gold", "one", "two")  # -/550/525
        self.revert("gold")
        self.migrate("silver", "two", "three")  # 500/-/525
        self.revert("silver")
        self.migrate("bronze", "three", "two")  # 500/550/-
        self.revert("bronze")

    def test_live_migration(self) -> None:
        for tier, was, host in (
            ("gold", "one", "two"),  # -/550/525
            ("silver", "two", "one"),  # 800/-/525
            ("bronze", "three", "one"),  # 650/400/-
        ):
            self.server = {"id": self.servers[tier]}
            self.src, self.dest = self.computes[was], self.computes[host]
            self._live_migrate(self.server)
            self.check(self.servers[tier], tier, host)
            assert self.held(self.get_migration_uuid_for_instance(self.servers[tier])) == {}

    def test_evacuation(self) -> None:
        for tier, was, host in (
            ("gold", "one", "two"),  # -/550/525
            ("silver", "two", "one"),  # 800/-/525
            ("bronze", "three", "one"),  # 650/400/-
        ):
            server = self.servers[tier]
            self.go_down(was)
            self._evacuate_server({"id": server}, expected_host=host)
            # Nova keeps what is on the dead host until that comes back.
            assert self.held(server) == {was: resources(tier), host: resources(tier)}
            self.restart(was)
            self.check(server, tier, host)
            self.come_back(was)

    def test_shelve_and_unshelve(self) -> None:
        for server in self.servers.values():
            self._shelve_server({"id": server})
            assert self.held(server) == {}
        for tier, host in (
            ("bronze", "one"),  # 800/700/600
            ("silver", "one"),  # 725/700/600
            ("gold", "two"),  # 575/700/600
        ):
            self._unshelve_server({"id": self.servers[tier]})
            self.check(self.servers[tier], tier, host)
