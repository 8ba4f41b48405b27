"""Seam that gives a migration the allocations of its source, where nova-conductor does not.

Before a resize or a cold migration, nova-conductor's ``replace_allocation_with_migration`` moves
the allocations of the server to the migration, but only if the server has an allocation of the
root provider. A server without a disk has allocations of NUMA nodes only, keeps them, and then has
the allocations of both hosts. A destination that reports its NUMA nodes removes its own after it
has refused the server (:mod:`cpu_tiers.nova.compute.leftover_allocations`). A destination that
does not report its NUMA nodes removes nothing. For such a destination, nova-scheduler writes to
the migration what nova-conductor writes for servers with a disk.

If a request fails, the server has the allocations of both hosts, as without this seam.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from nova import objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova.candidate_cells import Candidate, has_nodes
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import next_candidate
from cpu_tiers.nova.scheduler.started_resizes import migration_of
from cpu_tiers.nova.scheduler.two_consumers import write_both

LOG = logging.getLogger(__name__)


def _hand_over(original: Callable[..., Any]) -> Callable[..., Any]:
    """Claim a host that does not report its NUMA nodes, and hand the other allocations over."""

    @functools.wraps(original)
    def claim_resources(
        ctx: Any,
        client: Any,
        spec_obj: objects.RequestSpec,
        instance_uuid: str,
        alloc_req: Candidate,
        allocation_request_version: str | None = None,
    ) -> Any:
        claim = functools.partial(
            original, ctx, client, spec_obj, instance_uuid, alloc_req, allocation_request_version
        )
        if not CONF[filter_scheduler.GROUP].query_placement_for_numa or has_nodes(alloc_req):
            return claim()
        source = _source(ctx, client, spec_obj, instance_uuid)
        claimed = claim()
        if claimed and source is not None:
            fault = _write(ctx, client, source, instance_uuid, alloc_req)
            if fault:
                _warn(instance_uuid, fault)
        return claimed

    return claim_resources


class _Source(NamedTuple):
    """The migration of a server, and what the server holds of the source.

    :param held: the body of Placement's answer.
    """

    migration: str
    held: Mapping[str, Any]


def _source(
    context: Any, client: Any, spec_obj: objects.RequestSpec, server: str
) -> _Source | None:
    """Return the source of a resize or a cold migration; ``None`` if the migration holds it."""
    try:
        migration = migration_of(context, spec_obj, server)
        if migration is not None:
            held = client.get_allocs_for_consumer(context, server)
            if dict(held["allocations"]):
                return _Source(migration.uuid, held)
    except Exception as error:
        _warn(server, repr(error))
    return None


def _write(context: Any, client: Any, source: _Source, server: str, alloc_req: Candidate) -> str:
    """Write the source to the migration, and the claim to the server; return the fault, or ""."""
    claimed = alloc_req["allocations"]
    try:
        now = client.get_allocs_for_consumer(context, server)
        if now["allocations"].keys() != source.held["allocations"].keys() | claimed.keys():
            return "the allocations of the server have changed meanwhile"
        old = {**source.held, "consumer_generation": now["consumer_generation"]}
        fault, _ = write_both(client, context, source.migration, server, old, claimed)
    except Exception as error:
        return repr(error)
    return fault


def _warn(server: str, fault: str) -> None:
    LOG.warning("Server %s may keep the allocations of a host that refuses it: %s", server, fault)


SEAM = replace(
    next_candidate.CLAIMS,
    wrap=_hand_over,
    layer=1,  # the claim of a host without NUMA nodes is the only one of the host
    why=(
        "A server without a disk has the allocations of both hosts while it is resized or "
        "migrated; the wrapper gives the migration those of the source, if the destination does "
        "not report its NUMA nodes."
    ),
    unseen=(
        "If Nova claims elsewhere, such a server keeps the allocations of a host whose "
        "nova-compute has refused the server."
    ),
)
"""The seam for nova-scheduler."""
