"""Seam that names the shares if only the shares of a server leave no host for the server.

Nova's own fault of such a server is *No valid host was found.* without a reason. After an empty
answer, nova-scheduler sends the query once more without the shares (decision D84).
"""

import functools
import logging
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

from nova import exception

from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.nova import candidate_cells
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler.joined_answers import MOST_UNCHECKED
from cpu_tiers.nova.scheduler.numa_groups import numa_request_of
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)

_SECOND = "cpu_tiers_second"
"""The attribute of Nova's ResourceRequest whose answer Nova adds to the answer of another one."""


def leave_unexplained(request: Any) -> None:
    """Send no further query after an empty answer to a request."""
    setattr(request, _SECOND, True)


def _name_shares(original: Callable[..., Any]) -> Callable[..., Any]:
    """Raise an error with a reason in place of an empty answer, if only the shares are lacking."""

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        answer = original(self, context, resources)
        # None is a failed connection (Nova's safe_connect), (None, None, None) a refusal.
        if answer is None or answer[0] is None or answer[0]:
            return answer
        shares = _shares_of(resources)
        if shares and _is_explained(resources) and _has_host(self, context, resources):
            reason = (
                f"No host with room for the other resources of the server has {shares}"
                f" {VCPU_SHARES} left"
            )
            LOG.info("Got no allocation candidates from Placement. %s", reason)
            raise exception.NoValidHost(reason=reason)
        return answer

    return get_allocation_candidates


def _shares_of(request: Any) -> int:
    groups = request._rg_by_id.values()
    return sum(group.resources.get(VCPU_SHARES, 0) for group in groups)


def _is_explained(request: Any) -> bool:
    """Tell whether the answer to the query without the shares would tell the reason.

    The answer does not tell the reason if nova-scheduler joins or selects the candidates of
    several queries.
    """
    if getattr(request, _SECOND, False):
        return False
    if request.cpu_pinning_requested and not CONF.workarounds.disable_fallback_pcpu_query:
        return False  # SchedulerManager.select_destinations sends a second query
    numa_request = numa_request_of(request)
    if numa_request is None:
        return True
    nodes = numa_request.server.nodes if numa_request.server else ()
    return not numa_request.apart and len(nodes) <= MOST_UNCHECKED


def _has_host(client: Any, context: Any, request: Any) -> bool:
    """Tell whether a host has room for a server apart from the shares; ``False`` if unknown."""
    query = urlencode(list(_without_shares(request.to_querystring())))
    try:
        url = f"/allocation_candidates?{query}"
        answer = candidate_cells.read(client, context, url, version="1.36")
        return bool(answer["allocation_requests"])
    except (*NO_ANSWER, candidate_cells.NodesUnknown) as error:
        LOG.warning("Placement does not tell whether only %s are lacking: %r", VCPU_SHARES, error)
        return False


def _without_shares(query: str) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a query without the shares, for one candidate."""
    for name, value in parse_qsl(query):
        if name.startswith("resources"):
            amounts = value.split(",")
            value = ",".join(text for text in amounts if not text.startswith(f"{VCPU_SHARES}:"))
        if value and name != "limit":
            yield name, value
    yield "limit", "1"


SEAM = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters=("self", "context", "resources"),
    wrap=_name_shares,
    why=(
        "A server for which only the shares leave no host gets a fault without a reason; the "
        "wrapper names the shares."
    ),
    unseen="If another function sends the query, the fault of the server has no reason.",
    layer=2,  # looks at the joined answer of all queries
)
"""The seam around the query for allocation candidates."""
