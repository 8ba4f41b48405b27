"""Seam that refuses a migration or a resize while Placement tells no names.

Without the names of NUMA nodes or devices, nova-scheduler may choose what nova-compute refuses
(decision D77). If nova-compute refuses a migration or a resize on every host that nova-scheduler
chose, the server ends in ERROR, with Nova alone as well. Without a host, the server stays as it
was.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import itertools
import logging
from collections.abc import Callable, Iterable
from typing import Any

from nova import exception, objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.nova import candidate_cells
from cpu_tiers.nova.candidate_cells import Candidate, has_nodes
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import port_devices
from cpu_tiers.nova.scheduler.candidate_order import select_seam
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.scheduler.started_resizes import migration_of

LOG = logging.getLogger(__name__)


def _refuse(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _select_destinations(
        self: Any,
        context: Any,
        spec_obj: objects.RequestSpec,
        instance_uuids: Any,
        alloc_reqs_by_rp_uuid: dict[str, list[Candidate]] | None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        queries = CONF[filter_scheduler.GROUP].query_placement_for_numa
        if queries and instance_uuids and alloc_reqs_by_rp_uuid:
            candidates = itertools.chain.from_iterable(alloc_reqs_by_rp_uuid.values())
            with refusing("the search for candidates without names"):
                is_unread = _is_unread(candidates, spec_obj)
            if is_unread and _is_migrated(context.elevated(), spec_obj, instance_uuids[0]):
                reason = "Placement does not tell the names of the NUMA nodes or of the devices"
                raise exception.NoValidHost(reason=reason)
        return original(
            self, context, spec_obj, instance_uuids, alloc_reqs_by_rp_uuid, *args, **kwargs
        )

    return _select_destinations


def _is_unread(candidates: Iterable[Candidate], spec_obj: objects.RequestSpec) -> bool:
    """Tell whether a candidate has a NUMA node, or a NUMA node and a device, without a name."""
    suffixes = port_devices.groups_of_devices(spec_obj)
    return any(
        candidate_cells.is_unread(candidate) or port_devices.is_unread(candidate, suffixes)
        for candidate in filter(has_nodes, candidates)
    )


def _is_migrated(context: Any, spec_obj: objects.RequestSpec, server: str) -> bool:
    """Tell whether nova-conductor has started a cold migration or a resize of the server.

    A failed read counts as another move: an evacuation without a host would end in ERROR.
    """
    try:
        return migration_of(context, spec_obj, server) is not None
    except Exception as error:
        LOG.warning("Whether server %s is being migrated is not known: %r", server, error)
        return False


SEAM = select_seam(
    wrap=_refuse,
    why=(
        "Knows the candidates and the server; the wrapper refuses a cold migration or a resize if "
        "Placement does not tell the names of the candidates' NUMA nodes or devices."
    ),
    unseen=(
        "If the selection of hosts moves elsewhere, a server may end in ERROR after Placement has "
        "failed in its cold migration or resize."
    ),
    layer=2,
)
"""The seam for nova-scheduler."""
