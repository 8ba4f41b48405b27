"""Moves past the scheduler, which Nova's microversions 2.29 to 2.67 have (``force``).

Nova then copies what a server holds of one root to another. Of several
providers it cannot, and a server with nodes holds several.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from nova import utils

from tests.nova.compute.test_numa_pinning import ONE_AND_THREE, PINNED, TWO
from tests.nova.numa.agreement import held_of_nodes
from tests.nova.numa.lives import Lives


class Forced(Lives):
    """The server of a test starts on one; two reports its nodes as well, old does not."""

    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        super().setUp()
        self.start("one")
        self.start("two")
        self.start("old", reporting=None)

    @contextlib.contextmanager
    def nothing_changes(self) -> Iterator[None]:
        """Check that what is used of all hosts, and what the server holds, stays."""
        before = self.used(), held_of_nodes(self, self.server["id"])
        yield
        assert (self.used(), held_of_nodes(self, self.server["id"])) == before

    def live_migrate_to(self, host: str) -> None:
        """Force a live migration that must fail."""
        action = {"host": host, "block_migration": "auto", "force": True}
        with utils.temporary_mutation(self.api, microversion="2.67"), self.nothing_changes():
            self.api.post_server_action(self.server["id"], {"os-migrateLive": action})
            self._wait_for_migration_status(self.server, ["error"])
            self._wait_for_state_change(self.server, "ACTIVE")

    def evacuate_to(self, host: str) -> str:
        """Force an evacuation that must fail; return what the user sees of it."""
        action: dict[str, Any] = {"evacuate": {"host": host, "force": True}}
        with utils.temporary_mutation(self.api, microversion="2.67"), self.nothing_changes():
            self.api.post_server_action(self.server["id"], action)
            self._wait_for_action_fail_completion(self.server, "evacuate", "rebuild_server")
            self._wait_for_state_change(self.server, "ACTIVE")
        return self.last_failure_of(self.server)


class TestNodes(Forced):
    specs: ClassVar[Mapping[str, str]] = {**PINNED, **ONE_AND_THREE}
    disk_gb = 1

    def setUp(self) -> None:
        super().setUp()
        flavor = self.flavor("nodes", self.specs, vcpus=4, disk_gb=self.disk_gb)
        self.server = self.boot(flavor, host="one")
        self.is_on("one")

    def test_live_migration(self) -> None:
        for host in ("two", "old"):
            self.live_migrate_to(host)
            self.is_on("one")
        self.live_migrate("one", "two")  # by the scheduler
        self.is_on("two")
        self.end()

    def test_evacuation(self) -> None:
        self.go_down("one")
        for host in ("two", "old"):
            assert "complex allocations" in self.evacuate_to(host)
        self.is_back("one")
        self.is_on("one")
        self.end()


class TestNodesWithoutDisk(TestNodes):
    specs: ClassVar[Mapping[str, str]] = TWO
    disk_gb = 0


class TestFromAnOldHost(Forced):
    """Such servers hold one provider; of a host that reports its nodes there is none like it."""

    def test_live_migration(self) -> None:
        for specs in ({}, TWO):
            flavor = self.flavor(f"flavor {len(specs)}", specs, vcpus=2)
            self.server = self.boot(flavor, host="old")
            self.live_migrate_to("one")
            self.end()

    def test_evacuation(self) -> None:
        self.server = self.boot(self.flavor("nodes", TWO, vcpus=2), host="old")
        self.go_down("old")
        assert "not enough capacity" in self.evacuate_to("one")
        self.is_back("old")
        self.is_on_root("old")
        self.end()
