"""What a scoring that counts typical servers reads of the requests of nova-scheduler.

nova-scheduler imports this module with such a scoring.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Iterable
from typing import Any

from nova import objects
from nova.scheduler import utils

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova.convert import amounts_of, to_group
from cpu_tiers.nova.options import CONF
from cpu_tiers.weights import Forest
from cpu_tiers.weights.cost.gradient import History

HISTORY = History()
"""The requests of this nova-scheduler process."""


def groups_of(request: utils.ResourceRequest, avoided: frozenset[str]) -> tuple[RequestGroup, ...]:
    """Return the request groups that Nova has made from flavor, image and ports.

    :param avoided: further traits that the unsuffixed group forbids.
    """
    groups = [to_group(group, suffix) for suffix, group in request._rg_by_id.items()]
    return tuple(
        group._replace(forbidden=group.forbidden.union(() if group.suffix else avoided))
        for group in groups
    )


def sort_candidates(
    forest: Forest, hosts: Iterable[Any], request_spec: objects.RequestSpec
) -> None:
    """Put the best candidate of each host state first, among those that the scoring compares."""
    best = []
    for host in hosts:
        if host.allocation_candidates:
            equals = _equals_of_first(host, request_spec)
            forest.offer(host.uuid, list(map(amounts_of, equals)))
            best.append((host.allocation_candidates, forest.best(host.uuid)))
    # Nothing is changed before all hosts are worked out: a failure leaves Nova's order.
    for candidates, number in best:
        candidates.insert(0, candidates.pop(number))


def _equals_of_first(host: Any, request_spec: objects.RequestSpec) -> list[Any]:
    """Return the candidates of a host among which the scoring may choose."""
    if not CONF[filter_scheduler.GROUP].query_placement_for_numa:
        return list(host.allocation_candidates)
    from cpu_tiers.nova.scheduler.numa import candidate_order

    return candidate_order.equals_of_first(host, request_spec)
