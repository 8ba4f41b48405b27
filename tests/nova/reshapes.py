"""Computes that begin to report shares, with servers at rest and on their way."""

from importlib.metadata import version
from typing import Any
from unittest import mock

from nova import context, objects
from nova.scheduler.client import report

from tests.nova.computes import Computes

__all__ = ["CLIENT", "PLACEMENT", "POWER_OFF", "RESHAPE", "RPC", "Reshapes"]

POWER_OFF = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
RPC = "nova.compute.rpcapi.ComputeAPI"
CLIENT = report.SchedulerReportClient
RESHAPE = CLIENT._reshape
PLACEMENT = int(version("openstack-placement").partition(".")[0])
"""The release that runs here. Before 14 it checks what a write leaves as it was, too."""


class Reshapes(Computes):
    def setUp(self) -> None:
        super().setUp()
        self.reporting(False)
        self.flags(initial_cpu_allocation_ratio=1.0)

    def report(self, *hosts: str) -> int:
        """Restart hosts with reporting on; return how often Placement was asked to reshape."""
        self.reporting(True)
        return self.reshapes(*hosts)

    def reshapes(self, *hosts: str) -> int:
        """Restart hosts; return how often Placement was asked to reshape."""
        calls = []

        def counted(*args: Any) -> Any:
            calls.append(args)
            return RESHAPE(*args)

        with mock.patch.object(CLIENT, "_reshape", counted):
            for host in hosts:
                self.restart(host)
        return len(calls)

    def resize(self, *, stop: str | None = None, same_host: bool = False) -> tuple[str, str]:
        """Resize from bronze on one; return the uuids of server and migration.

        :param stop: the call to a compute that is lost on the way.
        """
        self.flags(allow_resize_to_same_host=same_host)
        self.start_host("one")
        if not same_host:
            self.start_host("two")
        server = self.boot_on("one", self.tier("bronze", "25", vcpus=2))
        gold = self.tier("gold", "100", vcpus=3)
        with mock.patch(POWER_OFF, return_value="{}"):
            if stop is None:
                self._resize_server({"id": server}, gold)
            else:
                with mock.patch(f"{RPC}.{stop}") as lost:
                    self.api.post_server_action(server, {"resize": {"flavorRef": gold}})
                    self._wait_for_assert(lost.assert_called)
        return server, self.migration_of(server)

    def live_migration(self) -> tuple[str, str]:
        """Have a server migrate from one to two; return the uuids of server and migration."""
        one, two = self.start_host("one"), self.start_host("two")
        server = self.boot_on("one", self.tier("bronze", "25", vcpus=2))
        # As Nova has it while the guest's memory is copied; the allocations are put directly.
        admin = context.get_admin_context()
        node = objects.ComputeNode.get_by_host_and_nodename(admin, "two", "two")
        migration = objects.Migration(
            admin,
            instance_uuid=server,
            migration_type="live-migration",
            status="running",
            source_compute="one",
            source_node="one",
            dest_compute="two",
            dest_node="two",
            dest_compute_id=node.id,
        )
        migration.create()
        held = self.placement.get(f"/allocations/{server}", version="1.28").body
        resources = held["allocations"][one]["resources"]
        keeper = {
            **held,
            "allocations": {one: {"resources": resources}},
            "consumer_generation": None,
        }
        mover = {**held, "allocations": {two: {"resources": resources}}}
        answer = self.placement.post(
            "/allocations", {migration.uuid: keeper, server: mover}, version="1.28"
        )
        assert answer.status == 204, answer.body
        return server, migration.uuid
