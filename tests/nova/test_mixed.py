"""A cloud whose hosts get our driver one by one: new has it, old has Nova's own."""

import contextlib
from collections.abc import Iterator

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from cpu_tiers.nova import seams
from cpu_tiers.nova.compute import guest_weight
from tests.nova.cloud import WEIGHER
from tests.nova.computes import Computes


class Mixed(LibvirtMigrationMixin, Computes):
    """The scheduler is ours and does not ask yet; a gold server of 2 vCPUs weighs 200."""

    weighers: tuple[str, ...] = (WEIGHER,)

    def setUp(self) -> None:
        super().setUp()
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy_disks, return_value="{}"))
        self.start_host("new")
        self.flags(compute_driver="libvirt.LibvirtDriver")
        self.start_host("old")
        self.gold = self.tier("gold", "100", vcpus=2)

    def check(self, server: str, host: str, *, shares: int | None, weight: str | None) -> None:
        assert self.host_of({"id": server}) == host
        assert self.allocated(server) == {host: shares}
        assert self.domain_shares(server, host) == weight

    def migrate(self, server: str) -> None:
        self._migrate_server({"id": server})

    def live_migrate(self, server: str, source: str, destination: str) -> None:
        self.server = {"id": server}
        self.src, self.dest = self.computes[source], self.computes[destination]
        with as_nova_does() if source == "old" else contextlib.nullcontext():
            self._live_migrate(self.server)


@contextlib.contextmanager
def as_nova_does() -> Iterator[None]:
    """Take our seam for live migrations out: old is a process of its own, and has none."""
    seams.remove([guest_weight.LIVE_MIGRATION])
    try:
        yield
    finally:
        seams.install([guest_weight.LIVE_MIGRATION])


class TestNobodyAsks(Mixed):
    def test_boot(self) -> None:
        self.check(self.boot_on("new", self.gold), "new", shares=None, weight="200")
        self.check(self.boot_on("old", self.gold), "old", shares=None, weight=None)

    def test_cold_migration_to_our_driver(self) -> None:
        server = self.boot_on("old", self.gold)
        self.migrate(server)
        self.check(server, "new", shares=None, weight="200")
        self._revert_resize({"id": server})
        self.check(server, "old", shares=None, weight=None)
        self.migrate(server)
        self._confirm_resize({"id": server})
        self.check(server, "new", shares=None, weight="200")

    def test_cold_migration_from_our_driver(self) -> None:
        server = self.boot_on("new", self.gold)
        self.migrate(server)
        self.check(server, "old", shares=None, weight=None)
        self._revert_resize({"id": server})
        self.check(server, "new", shares=None, weight="200")
        self.migrate(server)
        self._confirm_resize({"id": server})
        self.check(server, "old", shares=None, weight=None)

    def test_live_migration_to_our_driver_and_back(self) -> None:
        server = self.boot_on("old", self.gold)
        self.live_migrate(server, "old", "new")
        self.check(server, "new", shares=None, weight=None)
        self._reboot_server({"id": server}, hard=True)
        self.check(server, "new", shares=None, weight="200")
        self.live_migrate(server, "new", "old")
        self.check(server, "old", shares=None, weight="200")  # until it starts again there
        self._reboot_server({"id": server}, hard=True)
        self.check(server, "old", shares=None, weight=None)


class TestAsking(Mixed):
    """Asked for too early: only new reports."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        super().setUp()
        self.servers = [self.boot_on("old", self.gold) for _ in range(3)]
        self.restart_scheduler(query_placement_for_vcpu_shares=True)

    def test_only_the_host_that_reports_is_a_candidate(self) -> None:
        server = self.boot(self.gold)["id"]
        self.check(server, "new", shares=200, weight="200")
        wide = self.tier("wide", "1600")
        for _ in range(3):  # 16 CPUs x 100 x 4.0 - 200 - 3 x 1600 leaves 1400 …
            self.boot(wide)
        failed = self.boot(wide, state="ERROR")  # … and old does not count
        assert "No valid host was found" in self.fault_of(failed)
        plain = self.boot_on("old", self.flavor("plain"))
        self.check(plain, "old", shares=None, weight=None)

    def test_moves_go_to_the_host_that_reports_alone(self) -> None:
        cold, back, live = self.servers
        self.migrate(cold)
        assert self.allocated(self.migration_of(cold)) == {"old": None}
        self._confirm_resize({"id": cold})
        self.check(cold, "new", shares=200, weight="200")
        self.migrate(back)
        self._revert_resize({"id": back})
        self.check(back, "old", shares=None, weight=None)
        self.live_migrate(live, "old", "new")
        self.check(live, "new", shares=200, weight=None)
        self.api.post_server_action(cold, {"migrate": None})
        self._wait_for_action_fail_completion({"id": cold}, "migrate", "conductor_migrate_server")
        self.check(cold, "new", shares=200, weight="200")

    def test_the_upgrade_of_the_old_host(self) -> None:
        self.flags(compute_driver="cpu_tiers.LibvirtDriver")
        self.restart("old")
        for server in self.servers:
            self.check(server, "old", shares=200, weight=None)
            self._reboot_server({"id": server}, hard=True)
            self.check(server, "old", shares=200, weight="200")
        moved = self.boot_on("new", self.gold)
        self.migrate(moved)  # old is a candidate by now
        self.check(moved, "old", shares=200, weight="200")
