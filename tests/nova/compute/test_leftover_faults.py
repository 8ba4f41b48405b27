"""Placement fails while a server goes back to the host that it came from.

What Placement is asked about is the consumer of the migration. Nova takes every failed answer
for "no allocations" and then changes none. With the options off our driver must leave the server
exactly so: the same tests run with Nova's own driver and with ours.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import fixtures
import requests
from keystoneauth1.exceptions import ConnectFailure
from nova.scheduler.client.report import SchedulerReportClient

from tests.nova.computes import OURS, Computes
from tests.nova.networks import PORT_IDS, Neutron, add_devices, bandwidth, placement_of
from tests.nova.numa.pinning import PINNED, TWO, NumaComputes

NOVAS = "libvirt.LibvirtDriver"
AWAY = ConnectFailure("connection refused")


def answer(status: int, body: bytes) -> requests.Response:
    response = requests.Response()
    response.status_code, response._content = status, body
    return response


UNAVAILABLE = answer(503, b"<html>503</html>")
EMPTY = answer(200, b"")
GARBAGE = answer(200, b'{"allocations": {"5f5a')
NOTHING = answer(200, b"{}")


class Asked:
    """The GET requests for the allocations of one consumer."""

    def __init__(self) -> None:
        self.count = 0


@contextmanager
def failing(
    consumer: str, fault: requests.Response | Exception, *, times: int | None = None
) -> Iterator[Asked]:
    """Have Placement answer so when it is asked for the allocations of a consumer.

    :param times: how often; ``None`` for ever.
    """
    get, asked = SchedulerReportClient.get, Asked()

    def faulty(client: Any, url: str, *args: Any, **kwargs: Any) -> Any:
        if url != f"/allocations/{consumer}":
            return get(client, url, *args, **kwargs)
        asked.count += 1
        if times is not None and asked.count > times:
            return get(client, url, *args, **kwargs)
        if isinstance(fault, Exception):
            raise fault
        return fault

    with mock.patch.object(SchedulerReportClient, "get", faulty):
        yield asked


class Cloud(Computes):
    """Two hosts without any option of ours, and a server that was resized from one to two."""

    driver = OURS
    CAST_AS_CALL = False  # what fails in a service does so there, and not in the API

    def setUp(self) -> None:
        super().setUp()
        self.reporting(False)
        self.flags(compute_driver=self.driver)
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy_disks, return_value="{}"))
        for host in ("one", "two"):
            self.start_host(host)
        self.server = self.boot_on("one", self.flavor("small", vcpus=1))
        self._resize_server({"id": self.server}, self.flavor("large", vcpus=2))
        self.migration = self.migration_of(self.server)
        assert self.hosts() == ({"two"}, {"one"})

    def hosts(self) -> tuple[set[str], set[str]]:
        """Return the hosts of which the server and the migration have allocations."""
        return set(self.held(self.server)), set(self.held(self.migration))

    def revert(self, state: str) -> str:
        """Revert the resize; return the status of the migration in the end."""
        self.api.post_server_action(self.server, {"revertResize": None})
        self._wait_for_state_change({"id": self.server}, state)
        url = f"/os-migrations?instance_uuid={self.server}"
        (migration,) = self.api.api_get(url).body["migrations"]
        status: str = migration["status"]
        return status


class RevertFaults:
    """What stock Nova leaves, whichever driver runs."""

    def test_no_fault(self: Any) -> None:
        with failing(self.migration, AWAY, times=0) as asked:
            assert self.revert("ACTIVE") == "reverted"
        assert asked.count == 2  # Nova's _revert_allocation asks, and move_allocations asks again
        assert self.hosts() == ({"one"}, set())

    def check_nothing_is_changed(self: Any, fault: Any, times: int | None) -> None:
        with failing(self.migration, fault, times=times) as asked:
            assert self.revert("ACTIVE") == "reverted"
        assert asked.count == 1
        assert self.hosts() == ({"two"}, {"one"})
        assert self.host_of({"id": self.server}) == "one"

    def test_503_once(self: Any) -> None:
        self.check_nothing_is_changed(UNAVAILABLE, 1)

    def test_503_for_ever(self: Any) -> None:
        self.check_nothing_is_changed(UNAVAILABLE, None)

    def test_no_connection(self: Any) -> None:
        self.check_nothing_is_changed(AWAY, 1)

    def check_server_fails(self: Any, fault: Any) -> None:
        with failing(self.migration, fault, times=1) as asked:
            assert self.revert("ERROR") == "error"
        assert asked.count == 2  # with Nova's driver as with ours
        assert self.hosts() == ({"two"}, {"one"})

    def test_empty_answer(self: Any) -> None:
        self.check_server_fails(EMPTY)

    def test_half_an_answer(self: Any) -> None:
        self.check_server_fails(GARBAGE)


class TestNovasDriver(RevertFaults, Cloud):
    driver = NOVAS


class TestOptionsOff(RevertFaults, Cloud):
    pass


class TestPorts(Computes):
    """With Nova's own driver: a server with a port that requests bandwidth, resized to two."""

    CAST_AS_CALL = False

    def setUp(self) -> None:
        super().setUp()
        self.reporting(False)
        self.flags(compute_driver=NOVAS)
        copy_disks = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
        self.useFixture(fixtures.MockPatch(copy_disks, return_value="{}"))
        neutron = self.useFixture(Neutron(self))
        neutron.ask(PORT_IDS[0], bandwidth(1000))
        for host in ("one", "two"):
            self.start_host(host)
            add_devices(placement_of(self), host)
        self.server = self._create_server(
            flavor_id=self.flavor("small", vcpus=1), networks=[{"port": PORT_IDS[0]}], host="one"
        )
        self._resize_server(self.server, self.flavor("large", vcpus=2))

    def test_a_revert_without_an_answer_ends_in_error(self) -> None:
        with failing(self.migration_of(self.server["id"]), UNAVAILABLE):
            self.api.post_server_action(self.server["id"], {"revertResize": None})
            server = self._wait_for_state_change(self.server, "ERROR")
        assert "_fill_provider_mapping_based_on_allocs" in server["fault"]["details"]

    def test_no_fault(self) -> None:
        self._revert_resize(self.server)
        assert self.host_of(self.server) == "one"


class TestNodes(NumaComputes):
    """A server that has allocations of NUMA nodes alone; then the migration has none."""

    def setUp(self) -> None:
        super().setUp()
        self.start_host("one")
        self.server = self.boot(self.flavor("diskless", PINNED | TWO, vcpus=4))
        self.start_host("two")

    def nodes_of(self, consumer: str) -> set[str]:
        """Return the hosts of which a consumer has allocations."""
        providers = self.placement.get("/resource_providers").body["resource_providers"]
        names = {provider["uuid"]: provider["name"] for provider in providers}
        allocations = self.placement.get(f"/allocations/{consumer}").body["allocations"]
        return {names[uuid].partition("_")[0] for uuid in allocations}

    def revert(self, fault: Any, times: int | None) -> set[str]:
        """Revert a cold migration; return the hosts of which the server has allocations."""
        self._migrate_server(self.server)
        migration = self.migration_of(self.server["id"])
        assert self.nodes_of(self.server["id"]) == {"one", "two"}
        with failing(migration, fault, times=times):
            self._revert_resize(self.server)
        return self.nodes_of(self.server["id"])

    def test_503_once(self) -> None:
        # Our read fails, and then nothing is removed.
        assert self.revert(UNAVAILABLE, 1) == {"one", "two"}

    def test_an_answer_without_allocations(self) -> None:
        assert self.revert(NOTHING, 1) == {"one", "two"}

    def test_no_fault(self) -> None:
        assert self.revert(AWAY, 0) == {"one"}

    def test_the_write_fails(self) -> None:
        full = answer(409, json.dumps({"errors": [{"detail": "no"}]}).encode())
        self._migrate_server(self.server)
        with mock.patch.object(SchedulerReportClient, "_put_allocations", return_value=full):
            self._revert_resize(self.server)
        assert self.nodes_of(self.server["id"]) == {"one", "two"}
        assert "still has its allocations there" in self.stdlog.logger.output
