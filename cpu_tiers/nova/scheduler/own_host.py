"""The search for a resize of a server without a disk on the server's own host.

Nova's database has the migration of the resize, and Placement the allocations of the server. See
:mod:`cpu_tiers.nova.scheduler.same_host_resize` for the allocations of such a resize.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nova import exception, objects
from nova.context import target_cell

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.started_resizes import started_resize
from cpu_tiers.nova.scheduler.two_consumers import hand_over

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resize:
    """A resize whose migration has no allocations.

    :param migration: the uuid of the migration.
    :param root: the uuid of the root provider of the server's host.
    :param providers: the uuids of all providers of the host.
    :param old: the body of Placement's answer with the server's allocations; ``None`` if Nova's
        database did not answer. The host cannot be claimed then.
    """

    migration: str
    root: str
    providers: frozenset[str]
    old: Mapping[str, Any] | None

    def claim(
        self, client: Any, context: Any, server: str, allocations: Mapping[str, Any]
    ) -> bool:
        """Write the old allocations to the migration, and ``allocations`` to the server.

        :returns: ``False`` if Placement refuses, for instance because the host has no room
            for both consumers, or does not answer.
        """
        fault = "the resize is not known"
        if self.old is not None:
            fault = hand_over(client, context, self.migration, server, self.old, allocations)
        if fault:
            LOG.warning("Server %s cannot be resized on its host: %s", server, fault)
        return not fault


def find_resize(
    client: Any,
    context: Any,
    spec_obj: objects.RequestSpec,
    server: str,
    summaries: Mapping[str, Mapping[str, Any]],
) -> Resize | None:
    """Return the resize of the request's server, if the migration has no allocations.

    The database is read only for a server that may be resized on its own host, and
    Placement only if such a resize is going on and the host is a candidate, or if the database
    does not answer.

    :raises nova.exception.NoValidHost: Placement does not tell the allocations of the server. The
        claim of another host would need the same answer. If nova-compute refused such a claim, the
        allocations would stay, and the next claim on that host would have those of both.
    """
    if not _may_stay(spec_obj):
        return None
    roots = {uuid: summary["root_provider_uuid"] for uuid, summary in summaries.items()}
    try:
        started = _started(context, spec_obj, server)
    except Exception as error:
        LOG.warning("Whether server %s is being resized is not known: %r", server, error)
        return _unknown(client, context, server, roots)
    if started is None:
        return None
    migration, root = started
    if root not in roots.values():
        return None
    old = _read(client, context, server)
    if old is None:
        raise exception.NoValidHost(reason=f"the allocations of server {server} are not known")
    if not old["allocations"]:
        return None
    return Resize(migration=migration, root=root, providers=_providers(roots, root), old=old)


def _started(context: Any, spec_obj: objects.RequestSpec, server: str) -> tuple[str, str] | None:
    """Return the migration and the root provider of the source, for a resize that waits."""
    with target_cell(context, spec_obj.requested_destination.cell) as cell:
        migration = started_resize(cell, server)
        if migration is None:
            return None
        node = objects.ComputeNode.get_by_host_and_nodename(
            cell, migration.source_compute, migration.source_node
        )
        return migration.uuid, node.uuid


def _providers(roots: Mapping[str, str], root: str) -> frozenset[str]:
    return frozenset(uuid for uuid, own_root in roots.items() if own_root == root)


def _unknown(client: Any, context: Any, server: str, roots: Mapping[str, str]) -> Resize | None:
    """Return a resize that cannot claim the server's own host, since the database is away.

    A server without allocations, as in an unshelving, has no own host, and is placed as by Nova.

    :param roots: the root provider of each provider of Placement's answer.
    :raises nova.exception.NoValidHost: Placement does not tell the server's own host, either.
    """
    old = _read(client, context, server)
    if old is None:
        raise exception.NoValidHost(reason=f"the host of server {server} is not known")
    own_roots = sorted({roots[uuid] for uuid in old["allocations"] if uuid in roots})
    if not own_roots:
        return None
    root = own_roots[0]
    return Resize(migration="", root=root, providers=_providers(roots, root), old=None)


def _read(client: Any, context: Any, server: str) -> Mapping[str, Any] | None:
    """Return the body of Placement's answer with a server's allocations; ``None`` without answer.

    A read that fails is repeated once. Nova would claim the server's own host without the new
    amounts if the answer were taken for "no allocations", and the server would keep its old
    amounts.
    """
    for _ in range(2):
        try:
            old: Mapping[str, Any] = client.get_allocs_for_consumer(context, server)
            if isinstance(old["allocations"], Mapping):
                return old
            LOG.warning("Placement answered with allocations %.100r", old["allocations"])
        except NO_ANSWER as error:
            LOG.warning("The allocations of server %s are not known: %r", server, error)
    return None


def _may_stay(spec_obj: objects.RequestSpec) -> bool:
    """Tell whether a request may be the resize of a server with NUMA nodes on its own host."""
    if not CONF[filter_scheduler.GROUP].query_placement_for_numa:
        return False
    # nova-api puts the server's host here for a cold migration, and for a resize unless
    # allow_resize_to_same_host is on; nova-conductor for a live migration and an evacuation.
    if "ignore_hosts" in spec_obj and spec_obj.ignore_hosts:
        return False
    # nova-conductor restricts every move to the cell of the server, and no boot.
    destination = spec_obj.requested_destination if "requested_destination" in spec_obj else None
    return bool(destination and "cell" in destination and destination.cell)
