"""The disk of a server without NUMA nodes, requested of the provider that has its CPUs.

Hosts may have their disk from a pool that they share, so the disk has a group of its own
(:mod:`cpu_tiers.translators.shared_disk`). Placement combines the providers of both groups on each
host: with 1,000 hosts, this is a quarter of the work for a query. If the cloud has no pool, the
group of the CPUs can request the disk as well.
"""

from __future__ import annotations

import logging
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from cpu_tiers.model.names import SHARING
from cpu_tiers.nova import candidate_cells
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.scheduler.numa_groups import copy_of
from cpu_tiers.translators.cheaper_query import HOST
from cpu_tiers.translators.shared_disk import DISK

LOG = logging.getLogger(__name__)

KEPT_SECONDS = 300
"""For so many seconds nova-scheduler remembers whether the cloud has a pool. By default,
nova-compute remembers the aggregates of its hosts for the same time."""

_POOLS: WeakKeyDictionary[Any, tuple[float, bool]] = WeakKeyDictionary()
"""By client of Placement: the end of this time, and whether the cloud has a pool."""


def with_disk_of_host(client: Any, context: Any, request: Any) -> Any:
    """Return the request, without a group for the disk if no hosts share a pool.

    :param client: Nova's ``SchedulerReportClient``.
    :param request: Nova's ``ResourceRequest``, which stays as it is.
    """
    groups = request._rg_by_id
    if HOST not in groups or DISK not in groups or _may_share(client, context):
        return request
    changed = copy_of(request)
    disk, host = changed._rg_by_id.pop(DISK), changed._rg_by_id[HOST]
    host.resources = {**host.resources, **disk.resources}
    return changed


def _may_share(client: Any, context: Any) -> bool:
    """Tell whether the cloud has a pool; without an answer of Placement, it may have one."""
    until, has_pool = _POOLS.get(client, (0.0, True))
    if (now := monotonic()) < until:
        return has_pool
    url = f"/resource_providers?required={SHARING}"
    try:
        answer = candidate_cells.read(client, context, url, version="1.18")
        has_pool = bool(answer["resource_providers"])
    except (*NO_ANSWER, candidate_cells.NodesUnknown) as error:
        LOG.warning("Placement does not tell %s: %r", "whether hosts share a pool of disks", error)
        return True
    _POOLS[client] = now + KEPT_SECONDS, has_pool
    return has_pool
