"""Seams that try another candidate of a host before another host.

Nova claims the first candidate of each host, and an alternate is always another host. A host with
several NUMA nodes has a candidate for each choice of nodes and devices, so a race for a node, or
for a device that nova-compute refuses, says nothing of the other nodes.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Sequence
from itertools import islice
from typing import Any

from nova import exception, objects
from oslo_log import log as logging

from cpu_tiers.nova import steps
from cpu_tiers.nova.notes import search_of
from cpu_tiers.nova.numa.candidate_cells import Candidate, has_nodes
from cpu_tiers.nova.protocols import ReportClient
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)

MOST_CLAIMS = 4
"""So many candidates of a host are claimed before the next host's. Each refused claim is a request
to Placement."""

LEAST_ALTERNATES = 2
"""With fewer alternates, another candidate of the selected host would leave no other host."""


def _keep(original: Function, self: Any, spec_obj: objects.RequestSpec, *args: Any) -> Any:
    """Store the candidates of the sorted hosts for :func:`_claim_next`."""
    hosts = original(self, spec_obj, *args)
    kept = search_of(spec_obj).candidates
    for host in hosts:
        # A host state that was not made by _get_all_host_states has no candidates.
        candidates = getattr(host, "allocation_candidates", None)
        if candidates and has_nodes(candidates[0]):
            # _claim_next changes it, and a former server of the request may have claimed it.
            candidates[0] = dict(candidates[0])
            kept[id(candidates[0])] = candidates
    return hosts


def _claim_next(
    original: Function,
    ctx: Any,
    client: ReportClient,
    spec_obj: objects.RequestSpec,
    instance_uuid: str,
    alloc_req: dict[str, Any],
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Claim the next candidate of the host if Placement refuses the first.

    Nova's ``_schedule`` goes on with the object that it has claimed, so the object takes over the
    content of the candidate that Placement has granted.
    """
    claim = functools.partial(
        original, ctx, client, spec_obj, instance_uuid, alloc_req, *args, **kwargs
    )
    if claim():
        return True
    candidates = _kept(spec_obj, alloc_req)
    for _ in islice(candidates[1:], MOST_CLAIMS - 1):
        alloc_req |= candidates.pop(1)
        providers = ", ".join(alloc_req["allocations"])
        LOG.debug("The next candidate is on %s", providers, instance_uuid=instance_uuid)
        try:
            if claim():
                return True
        except exception.AllocationUpdateFailed as error:
            # Placement has carried out the first claim, and its answer was lost. Without
            # cpu-tiers, this request would not have been sent.
            LOG.warning("Server has allocations already: %s", error, instance_uuid=instance_uuid)
            return False
    return False


def _offer_next(
    original: Function,
    self: Any,
    selected_hosts: Sequence[Any],
    spec_obj: objects.RequestSpec,
    hosts: Sequence[Any],
    index: int,
    num_alts: int,
    alloc_reqs_by_rp_uuid: Any = None,
    allocation_request_version: str | None = None,
    selected_alloc_reqs: Sequence[Candidate] | None = None,
) -> Any:
    """Make another candidate of the selected host the first alternate.

    If the servers of the request leave the host no other candidate, as far as nova-scheduler
    knows, another candidate that the host had before the claim becomes the last alternate.
    """
    request_parts = alloc_reqs_by_rp_uuid, allocation_request_version, selected_alloc_reqs
    selections = original(self, selected_hosts, spec_obj, hosts, index, num_alts, *request_parts)
    if num_alts < LEAST_ALTERNATES or not selected_alloc_reqs:
        return selections
    for host_selections, host, claimed in zip(
        selections, selected_hosts, selected_alloc_reqs, strict=True
    ):
        now = _other(host.allocation_candidates, claimed)
        other = now or _other(_kept(spec_obj, claimed), claimed)
        if other is not None:
            alternate = objects.Selection.from_host_state(host, other, allocation_request_version)
            host_selections.insert(1 if now else len(host_selections), alternate)
            del host_selections[1 + num_alts :]
    return selections


def _kept(spec_obj: objects.RequestSpec, claimed: Candidate) -> list[Candidate]:
    """Return the candidates of the host that ``claimed`` was the first of; none if not kept."""
    kept: list[Candidate] = search_of(spec_obj).candidates.get(id(claimed), [])
    # The id may have been that of a candidate that is gone.
    return kept if kept and kept[0] is claimed else []


def _other(candidates: Sequence[Candidate], claimed: Candidate) -> Candidate | None:
    """Return the best candidate on other providers than ``claimed``; ``None`` if there is none."""
    if not has_nodes(claimed):
        return None
    taken = claimed["allocations"].keys()
    return next((other for other in candidates if other["allocations"].keys() != taken), None)


SEAMS = (
    steps.sorted_hosts(_keep),
    steps.claim(_claim_next),
    seam(
        "nova.scheduler.manager:SchedulerManager._get_alternate_hosts",
        "self, selected_hosts, spec_obj, hosts, index, num_alts, alloc_reqs_by_rp_uuid=None,"
        " allocation_request_version=None, selected_alloc_reqs=None",
        _offer_next,
    ),
)
