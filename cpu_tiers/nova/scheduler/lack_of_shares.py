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
from cpu_tiers.nova.scheduler.empty_answers import REASONS, has_host, is_empty, is_explained
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)


def _name_shares(original: Callable[..., Any]) -> Callable[..., Any]:
    """Raise an error with a reason in place of an empty answer, if only the shares are lacking."""

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        answer = original(self, context, resources)
        shares = _shares_of(resources)
        if not (shares and is_empty(answer) and is_explained(resources)):
            return answer
        query = urlencode(list(_without_shares(resources.to_querystring())))
        question = f"only {VCPU_SHARES} are lacking"
        if REASONS.do(lambda: has_host(self, context, query, question)):
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
