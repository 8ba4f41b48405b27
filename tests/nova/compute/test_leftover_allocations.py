"""A server that holds nothing of a host's root: in the end it holds one host alone."""

from typing import Any
from unittest import mock

from nova import exception
from nova.tests.functional.libvirt.base import LibvirtMigrationMixin

from tests.nova.computes import Computes
from tests.nova.numa.agreement import check_agreement, held_of_nodes
from tests.nova.numa.pinning import PINNED, PINNING, TWO


class Diskless(Computes):
    kind = PINNING

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")
        self.server = self.boot(self.flavor("diskless", PINNED | TWO, vcpus=4))
        self.before = set(self.where(self.server["id"]))
        self.start_host("two")

    def hosts(self, *, others: bool = False) -> set[str]:
        return {host for host, _ in check_agreement(self, self.server["id"], others=others)}


class TestColdMigration(Diskless):
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def test_confirmed(self) -> None:
        self._migrate_server(self.server)
        assert self.hosts(others=True) == {"two"}
        assert held_of_nodes(self, self.server["id"]).keys() > self.before
        self._confirm_resize(self.server)
        assert self.hosts() == {"two"}
        self._migrate_server(self.server)  # and back to where it was
        self._confirm_resize(self.server)
        assert self.hosts() == {"one"}

    def test_reverted(self) -> None:
        self._migrate_server(self.server)
        self._revert_resize(self.server)
        assert set(self.where(self.server["id"])) == self.before

    def test_failed(self) -> None:
        refused = exception.ComputeResourcesUnavailable(reason="no")
        with mock.patch("nova.compute.claims.MoveClaim._claim_test", side_effect=refused):
            self.api.post_server_action(self.server["id"], {"migrate": None})
            self._wait_for_action_fail_completion(self.server, "migrate", "compute_prep_resize")
        self._wait_for_state_change(self.server, "ERROR")  # as Nova leaves it
        assert set(self.where(self.server["id"])) == self.before


class TestLiveMigration(LibvirtMigrationMixin, Diskless):
    def setUp(self) -> None:
        super().setUp()
        self.src, self.dest = self.computes["one"], self.computes["two"]

    def test_there(self) -> None:
        self._live_migrate(self.server)
        assert self.hosts() == {"two"}

    def test_failed(self) -> None:
        def fail(domain: Any, destination: Any, params: Any, flags: Any) -> None:
            connection = self.src.driver._host.get_connection()
            connection.lookupByUUIDString(self.server["id"]).fail_job()

        with mock.patch("nova.tests.fixtures.libvirt.Domain.migrateToURI3", fail):
            self._live_migrate(self.server, migration_expected_state="failed")
        assert set(self.where(self.server["id"])) == self.before
