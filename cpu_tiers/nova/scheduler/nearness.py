"""How near hosts are to the present host of a server, and to its project.

nova-scheduler imports this module where a multiplier of nearness is set. All results are from 0
to 1.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Sequence

from nova import objects
from nova.context import RequestContext, target_cell

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.conf.weigher import SAME_HOST, SAME_PROJECT
from cpu_tiers.nova.convert import field
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import HostManager, HostState

_PROJECTS = "filter_tenant_id"
"""The beginning of the metadata keys by which Nova reserves aggregates for projects."""


class Nearness:
    """How near hosts are to the server of a request.

    :param context: of the request.
    :param host_manager: Nova's, which knows the aggregates of all hosts.
    """

    def __init__(
        self,
        request_spec: objects.RequestSpec,
        context: RequestContext | None,
        host_manager: HostManager | None,
    ) -> None:
        self._request_spec = request_spec
        self._context = context
        self._host_manager = host_manager

    def to(self, option: str, hosts: Sequence[HostState]) -> list[float]:
        """Return how near the hosts are.

        :param option: the name of the multiplier.
        """
        if option == SAME_PROJECT:
            return [_is_of_project(host, self._request_spec.project_id) for host in hosts]
        if option == SAME_HOST:
            return [float(host.host == self._present_host) for host in hosts]
        return self._by_aggregates(hosts)

    def _by_aggregates(self, hosts: Sequence[HostState]) -> list[float]:
        """Return the part of the keys by which a host is in an aggregate of the present host."""
        if self._host_manager is None or self._present_host is None:
            return [0.0] * len(hosts)
        keys = CONF[filter_scheduler.GROUP].resource_provider_same_aggregate_keys
        groups = self._host_manager._get_aggregates_info(self._present_host)
        shared = [{group.id for group in groups if key in group.metadata} for key in keys]
        aggregates_of_hosts = [{group.id for group in host.aggregates} for host in hosts]
        return [
            sum(not host_aggregates.isdisjoint(key_aggregates) for key_aggregates in shared)
            / (len(keys) or 1)
            for host_aggregates in aggregates_of_hosts
        ]

    @functools.cached_property
    def _present_host(self) -> str | None:
        """The host of a server that is moved; ``None`` for a server without a host.

        Nova's moves ignore the present host, and name the host first. Only a resize that may stay
        on the host does not: the server's own record is read, in one query. Nova's lists of the
        servers of each host are no source: after a live migration, or after an evacuation, the
        list of the former host has the server still.
        """
        if ignored := field(self._request_spec, "ignore_hosts"):
            return str(ignored[0])
        destination = field(self._request_spec, "requested_destination")
        cell = field(destination, "cell") if destination else None
        if self._context is None or cell is None:
            return None  # a new server: only the requests of servers that exist name a cell
        with target_cell(self._context.elevated(), cell) as context:
            uuid = self._request_spec.instance_uuid
            host: str | None = objects.Instance.get_by_uuid(context, uuid, expected_attrs=[]).host
        return host


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
