"""Computes that begin to report shares, with servers at rest and on their way."""

from importlib.metadata import version
from typing import Any
from unittest import mock

from nova import context, objects
from nova.scheduler.client import report

from tests.nova.computes import Computes
from tests.nova.kinds import STARTS_TO_REPORT

POWER_OFF = "nova.virt.libvirt.driver.LibvirtDriver.migrate_disk_and_power_off"
RPC = "nova.compute.rpcapi.ComputeAPI"
CLIENT = report.SchedulerReportClient
RESHAPE = CLIENT._reshape
PLACEMENT = int(version("openstack-placement").partition(".")[0])
"""The release that runs here. Before 14 it checks what a write leaves as it was, too."""


class Reshapes(Computes):
    """Computes that do not report shares yet."""

    kind = STARTS_TO_REPORT


def start_reporting(cloud: Computes, *hosts: str) -> int:
    """Restart hosts with reporting on; return how often Placement was asked to reshape."""
    cloud.reporting(True)
    return count_reshapes(cloud, *hosts)


def count_reshapes(cloud: Computes, *hosts: str) -> int:
    """Restart hosts; return how often Placement was asked to reshape."""
    calls = []

    def counted(*args: Any) -> Any:
        calls.append(args)
        return RESHAPE(*args)

    with mock.patch.object(CLIENT, "_reshape", counted):
        for host in hosts:
            cloud.restart(host)
    return len(calls)


def resize_from_one(
    cloud: Computes, *, stop: str | None = None, same_host: bool = False
) -> tuple[str, str]:
    """Resize from bronze on one; return the uuids of server and migration.

    :param stop: the call to a compute that is lost on the way.
    """
    cloud.flags(allow_resize_to_same_host=same_host)
    cloud.start_host("one")
    if not same_host:
        cloud.start_host("two")
    server = cloud.boot_on("one", cloud.tier("bronze", "25", vcpus=2))
    gold = cloud.tier("gold", "100", vcpus=3)
    with mock.patch(POWER_OFF, return_value="{}"):
        if stop is None:
            cloud._resize_server({"id": server}, gold)
        else:
            with mock.patch(f"{RPC}.{stop}") as lost:
                cloud.api.post_server_action(server, {"resize": {"flavorRef": gold}})
                cloud._wait_for_assert(lost.assert_called)
    return server, cloud.migration_of(server)


def live_migrate_from_one(cloud: Computes) -> tuple[str, str]:
    """Have a server migrate from one to two; return the uuids of server and migration."""
    one, two = cloud.start_host("one"), cloud.start_host("two")
    server = cloud.boot_on("one", cloud.tier("bronze", "25", vcpus=2))
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
    held = cloud.placement.get(f"/allocations/{server}", version="1.28").body
    resources = held["allocations"][one]["resources"]
    keeper = {
        **held,
        "allocations": {one: {"resources": resources}},
        "consumer_generation": None,
    }
    mover = {**held, "allocations": {two: {"resources": resources}}}
    answer = cloud.placement.post(
        "/allocations", {migration.uuid: keeper, server: mover}, version="1.28"
    )
    assert answer.status == 204, answer.body
    return server, migration.uuid
