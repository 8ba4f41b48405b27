"""How near hosts are to the present host of a server, and to its project.

nova-scheduler imports this module where a multiplier of nearness is set. The module reads only
what Nova has in memory: the request spec, the host states, and the aggregates and servers of the
hosts. All results are from 0 to 1.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Sequence

from nova import objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.conf.weigher import SAME_HOST, SAME_PROJECT
from cpu_tiers.nova.convert import field
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import HostManager, HostState

_PROJECTS = "filter_tenant_id"
"""The beginning of the metadata keys by which Nova reserves aggregates for projects."""


def nearness(
    option: str,
    hosts: Sequence[HostState],
    request_spec: objects.RequestSpec,
    host_manager: HostManager | None,
) -> list[float]:
    """Return how near the hosts are.

    :param option: the name of the multiplier.
    """
    if option == SAME_PROJECT:
        return [_is_of_project(host, request_spec.project_id) for host in hosts]
    present = None if host_manager is None else _present_host(request_spec, host_manager)
    if host_manager is None or present is None:
        return [0.0] * len(hosts)
    if option == SAME_HOST:
        return [float(host.host == present) for host in hosts]
    keys = CONF[filter_scheduler.GROUP].resource_provider_same_aggregate_keys
    shared = [
        {group.id for group in host_manager._get_aggregates_info(present) if key in group.metadata}
        for key in keys
    ]
    groups = [{group.id for group in host.aggregates} for host in hosts]
    return [sum(not own.isdisjoint(of) for of in shared) / (len(keys) or 1) for own in groups]


def _is_of_project(host: HostState, project: str) -> float:
    """Return 1.0 for a host in an aggregate of the project, and 0.0 for other hosts."""
    return float(
        any(
            project in map(str.strip, value.split(","))
            for group in host.aggregates
            for key, value in group.metadata.items()
            if key.startswith(_PROJECTS)
        )
    )


def _present_host(request_spec: objects.RequestSpec, host_manager: HostManager) -> str | None:
    """Return the host of a server that is moved; ``None`` for a server without a host.

    Nova's moves ignore the present host, and name the host first; only a resize that may stay on
    the host does not. The present host of such a resize is known only with ``[filter_scheduler]
    track_instance_changes``.
    """
    if ignored := field(request_spec, "ignore_hosts"):
        return str(ignored[0])
    # A copy: other threads of nova-scheduler add hosts.
    known = list(host_manager._instance_info.items())
    server = request_spec.instance_uuid
    return next((host for host, info in known if server in info["instances"]), None)
