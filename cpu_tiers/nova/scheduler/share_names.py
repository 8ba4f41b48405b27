"""Seam that finds the hosts with either name of VCPU_SHARES.

Once the installed os-resource-classes contains VCPU_SHARES, some hosts have this name and other
hosts still have CUSTOM_VCPU_SHARES. Placement knows no query for either of two resource classes,
so nova-scheduler sends a query for each name. The candidates keep the names of their hosts,
because they are claimed; in the summaries, which the weigher reads, every host has our name.
"""

import copy
import functools
import logging
from collections.abc import Callable
from typing import Any

from cpu_tiers.model.names import by_each_name, with_shares_named
from cpu_tiers.nova.no_answer import NO_ANSWER, read_further
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)


def _ask_by_each_name(original: Callable[..., Any]) -> Callable[..., Any]:
    """Join the candidates of the hosts with our name and with the other name.

    If the second query fails, the candidates of the first query are the answer. Without
    candidates, the answer is what Nova returns for a failed query.
    """

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        ours, *others = by_each_name(resources.to_querystring())
        if not others:
            return original(self, context, resources)
        by_our_name = copy.copy(resources)
        by_our_name.to_querystring = lambda: ours
        answer = original(self, context, by_our_name)
        if answer is None or answer[0] is None:  # a failed query; Nova has logged the failure
            return answer
        candidates, summaries, version = answer
        try:
            further = read_further(self, context, ours, version)
            candidates = [*candidates, *further["allocation_requests"]]
            summaries = {**summaries, **with_shares_named(further["provider_summaries"])}
        except NO_ANSWER as error:
            LOG.warning(
                "Placement does not tell the hosts with the other name of VCPU_SHARES: %r", error
            )
            return answer if candidates else (None, None, None)
        return candidates, summaries, version

    return get_allocation_candidates


SEAM = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters="self, context, resources",
    wrap=_ask_by_each_name,
    layer=-2,  # the innermost: each query for a server is sent under each name
)
"""The seam around the query for allocation candidates."""
