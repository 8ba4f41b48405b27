"""VCPU_SHARES stay right while a server moves."""

import fixtures
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.cloud import SHARES, STOCK
from tests.nova.computes import Computes


class Moves(Computes):
    """Two hosts and a gold server of 2 vCPUs on the first: 200 shares."""

    kind = STOCK
    microversion = "latest"

    def setUp(self) -> None:
        super().setUp()
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy_disks, return_value="{}"))  # there are none
        self.start_host("one", **{SHARES: 800})
        self.server = self.boot(self.tier("gold", "100", vcpus=2))
        self.start_host("two", **{SHARES: 800})
        assert self.allocated(self.server["id"]) == {"one": 200}

    def allocated_to_migration(self) -> dict[str, int | None]:
        return self.allocated(self.get_migration_uuid_for_instance(self.server["id"]))


class TestResize(Moves):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def test_confirmed(self) -> None:
        self._resize_server(self.server, self.tier("silver", "50", vcpus=3))
        assert self.allocated(self.server["id"]) == {"two": 150}
        assert self.allocated_to_migration() == {"one": 200}
        self._confirm_resize(self.server)
        assert self.allocated(self.server["id"]) == {"two": 150}
        assert self.allocated_to_migration() == {}

    def test_reverted(self) -> None:
        self._resize_server(self.server, self.tier("silver", "50", vcpus=3))
        self._revert_resize(self.server)
        assert self.allocated(self.server["id"]) == {"one": 200}
        assert self.allocated_to_migration() == {}

    def test_to_a_flavor_without_shares(self) -> None:
        self._resize_server(self.server, self.flavor("plain"))
        assert self.allocated(self.server["id"]) == {"two": None}
        assert self.allocated_to_migration() == {"one": 200}

    def test_to_more_shares_than_a_host_has(self) -> None:
        platinum = self.tier("platinum", "300", vcpus=3)  # 900
        assert "No valid host was found" in self.fail_to_resize(self.server, platinum)
        assert self.allocated(self.server["id"]) == {"one": 200}


class TestColdMigration(Moves):
    def test_confirmed(self) -> None:
        self._migrate_server(self.server)
        assert self.allocated(self.server["id"]) == {"two": 200}
        assert self.allocated_to_migration() == {"one": 200}
        self._confirm_resize(self.server)
        assert self.allocated(self.server["id"]) == {"two": 200}

    def test_reverted(self) -> None:
        self._migrate_server(self.server)
        self._revert_resize(self.server)
        assert self.allocated(self.server["id"]) == {"one": 200}
        assert self.allocated_to_migration() == {}


class TestLiveMigration(LibvirtMigrationMixin, Moves):
    def test_a_live_migration(self) -> None:
        self.src, self.dest = self.computes["one"], self.computes["two"]
        self._live_migrate(self.server)
        assert self.host_of(self.server) == "two"
        assert self.allocated(self.server["id"]) == {"two": 200}
        assert self.allocated_to_migration() == {}


class TestAway(Moves):
    def test_evacuate(self) -> None:
        self.go_down("one")
        self._evacuate_server(self.server, expected_host="two")
        # Nova keeps what is on the dead host until that comes back.
        assert self.allocated(self.server["id"]) == {"one": 200, "two": 200}

    def test_shelve_and_unshelve(self) -> None:
        self._shelve_server(self.server)
        assert self.allocated(self.server["id"]) == {}
        self._unshelve_server(self.server)
        assert list(self.allocated(self.server["id"]).values()) == [200]

    def test_rebuild(self) -> None:
        image = "a2459075-d96c-40d5-893e-577ff92e721c"
        self._rebuild_server(self.server, image)
        assert self.allocated(self.server["id"]) == {"one": 200}
