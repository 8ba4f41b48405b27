"""What a scoring that counts typical servers reads of the requests of nova-scheduler.

nova-scheduler imports this module with such a scoring.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from typing import Any

from nova import objects
from nova.scheduler import utils

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.names import with_shares_named
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova.options import CONF
from cpu_tiers.weights.cost.gradient import History

HISTORY = History()
"""The requests of this nova-scheduler process."""


def groups_of(request: utils.ResourceRequest, avoided: frozenset[str]) -> tuple[RequestGroup, ...]:
    """Return the request groups that Nova has made from flavor, image and ports.

    :param avoided: further traits that the unsuffixed group forbids.
    """
    return tuple(
        RequestGroup(
            suffix=suffix or "",
            resources=with_shares_named(group.resources),
            required=frozenset(group.required_traits),
            forbidden=frozenset(group.forbidden_traits).union(() if suffix else avoided),
        )
        for suffix, group in request._rg_by_id.items()
    )


def equals_of_first(host: Any, request_spec: objects.RequestSpec) -> list[Any]:
    """Return the candidates of a host among which the scoring may choose."""
    if not CONF[filter_scheduler.GROUP].query_placement_for_numa:
        return list(host.allocation_candidates)
    from cpu_tiers.nova.scheduler.numa import node_devices

    return node_devices.equals_of_first(host, request_spec)
