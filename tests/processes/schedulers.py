"""Requests to a nova-scheduler through its message queue, many at the same time."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import oslo_messaging
from nova import context, exception, objects, rpc
from nova.objects import base

from tests.processes.daemons import PATIENCE


def ask_many(number: int, *, memory_mb: int = 512, rebuild: bool = False) -> list[str]:
    """Send requests to nova-scheduler at the same time; return the answers.

    :param memory_mb: of the flavor, which is of a tier.
    :param rebuild: the requests are of rebuilds, for which nova-scheduler does not ask Placement.
    :returns: the name of the host, or the fault of the server without a host.
    :raises oslo_messaging.MessagingTimeout: a request has no answer.
    """
    specs = [request_spec(memory_mb, rebuild=rebuild) for _ in range(number)]
    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(ask, specs))


def ask(spec: objects.RequestSpec) -> str:
    """Send a request to nova-scheduler; return the host, or the fault of the server.

    :raises oslo_messaging.MessagingTimeout: the request has no answer.
    """
    client = rpc.get_client(
        oslo_messaging.Target(topic="scheduler", version="4.0"),
        serializer=base.NovaObjectSerializer(),
    ).prepare(version="4.5", timeout=PATIENCE)
    values = {"spec_obj": spec, "instance_uuids": [spec.instance_uuid]}
    admin = context.get_admin_context()
    try:
        answer = client.call(admin, "select_destinations", return_objects=True, **values)
    except exception.NoValidHost as fault:
        return str(fault).partition("\n")[0].strip()
    (name,) = {selection.service_host for own in answer for selection in own}
    return str(name)


def request_spec(memory_mb: int = 512, *, rebuild: bool = False) -> objects.RequestSpec:
    """Return the request of a server of a tier."""
    flavor = objects.Flavor(
        id=1,
        flavorid="tier",
        name="tier",
        memory_mb=memory_mb,
        vcpus=1,
        root_gb=1,
        ephemeral_gb=0,
        swap=0,
        rxtx_factor=1.0,
        vcpu_weight=0,
        disabled=False,
        is_public=True,
        extra_specs={"quota:cpu_shares_multiplier": "100"},
    )
    return objects.RequestSpec(
        instance_uuid=str(uuid4()),
        project_id="admin",
        user_id="admin",
        num_instances=1,
        flavor=flavor,
        image=objects.ImageMeta(properties=objects.ImageMetaProps()),
        numa_topology=None,
        pci_requests=None,
        availability_zone=None,
        ignore_hosts=None,
        force_hosts=None,
        force_nodes=None,
        retry=None,
        limits=objects.SchedulerLimits(),
        instance_group=None,
        scheduler_hints={"_nova_check_type": ["rebuild"]} if rebuild else {},
        security_groups=objects.SecurityGroupList(),
        requested_destination=None,
        requested_networks=objects.NetworkRequestList(),
        requested_resources=[],
        is_bfv=False,
    )
