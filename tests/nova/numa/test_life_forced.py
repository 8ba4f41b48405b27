"""Moves past the scheduler, which Nova's microversions 2.29 to 2.67 have (``force``).

Nova then copies what a server holds of one root to another. Of several
providers it cannot, and a server with nodes holds several.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from nova import utils
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.numa.agreement import held_of_nodes
from tests.nova.numa.lives import Life
from tests.nova.numa.pinning import ONE_AND_THREE, PINNED, PINNING, TWO


class Forced(Life):
    """The server of a test starts on one; two reports its nodes as well, old does not."""

    def __init__(self, cloud: Computes) -> None:
        super().__init__(cloud)
        self.start("one")
        self.start("two")
        self.start("old", reporting=None)

    @contextlib.contextmanager
    def nothing_changes(self) -> Iterator[None]:
        """Check that what is used of all hosts, and what the server holds, stays."""
        before = self.used(), held_of_nodes(self.cloud, self.server["id"])
        yield
        assert (self.used(), held_of_nodes(self.cloud, self.server["id"])) == before

    def live_migrate_to(self, host: str) -> None:
        """Force a live migration that must fail."""
        cloud, action = self.cloud, {"host": host, "block_migration": "auto", "force": True}
        with utils.temporary_mutation(cloud.api, microversion="2.67"), self.nothing_changes():
            cloud.api.post_server_action(self.server["id"], {"os-migrateLive": action})
            cloud._wait_for_migration_status(self.server, ["error"])
            cloud._wait_for_state_change(self.server, "ACTIVE")

    def evacuate_to(self, host: str) -> str:
        """Force an evacuation that must fail; return what the user sees of it."""
        cloud = self.cloud
        action: dict[str, Any] = {"evacuate": {"host": host, "force": True}}
        with utils.temporary_mutation(cloud.api, microversion="2.67"), self.nothing_changes():
            cloud.api.post_server_action(self.server["id"], action)
            cloud._wait_for_action_fail_completion(self.server, "evacuate", "rebuild_server")
            cloud._wait_for_state_change(self.server, "ACTIVE")
        return cloud.last_failure_of(self.server)


class TestNodes(LibvirtMigrationMixin, Computes):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API
    kind = PINNING
    specs: ClassVar[Mapping[str, str]] = {**PINNED, **ONE_AND_THREE}
    disk_gb = 1

    def setUp(self) -> None:
        super().setUp()
        self.life = Forced(self)
        flavor = self.flavor("nodes", self.specs, vcpus=4, disk_gb=self.disk_gb)
        self.server = self.boot(flavor, host="one")
        self.life.is_on("one")

    def test_live_migration(self) -> None:
        for host in ("two", "old"):
            self.life.live_migrate_to(host)
            self.life.is_on("one")
        self.life.live_migrate("one", "two")  # by the scheduler
        self.life.is_on("two")
        self.life.end()

    def test_evacuation(self) -> None:
        self.go_down("one")
        for host in ("two", "old"):
            assert "complex allocations" in self.life.evacuate_to(host)
        self.life.is_back("one")
        self.life.is_on("one")
        self.life.end()


class TestNodesWithoutDisk(TestNodes):
    specs: ClassVar[Mapping[str, str]] = TWO
    disk_gb = 0


class TestFromAnOldHost(LibvirtMigrationMixin, Computes):
    """Such servers hold one provider; of a host that reports its nodes there is none like it."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.life = Forced(self)

    def test_live_migration(self) -> None:
        for specs in ({}, TWO):
            flavor = self.flavor(f"flavor {len(specs)}", specs, vcpus=2)
            self.server = self.boot(flavor, host="old")
            self.life.live_migrate_to("one")
            self.life.end()

    def test_evacuation(self) -> None:
        self.server = self.boot(self.flavor("nodes", TWO, vcpus=2), host="old")
        self.go_down("old")
        assert "not enough capacity" in self.life.evacuate_to("one")
        self.life.is_back("old")
        self.life.is_on_root("old")
        self.life.end()
