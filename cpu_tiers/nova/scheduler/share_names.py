"""Seam that finds the hosts with either name of VCPU_SHARES.

Once the installed os-resource-classes contains VCPU_SHARES, some hosts have this name and other
hosts still have CUSTOM_VCPU_SHARES. Placement knows no query for either of two resource classes,
so nova-scheduler sends a query for each name. The candidates keep the names of their hosts,
because they are claimed; in the summaries, which the weigher reads, every host has our name.
"""

from __future__ import annotations

import copy
import logging
from typing import Any

from nova.context import RequestContext

from cpu_tiers.model.names import by_each_name, with_shares_named
from cpu_tiers.nova import steps
from cpu_tiers.nova.no_answer import NO_ANSWER
from cpu_tiers.nova.protocols import ReportClient, ResourceRequest
from cpu_tiers.nova.seams import Function

LOG = logging.getLogger(__name__)


def _ask_by_each_name(
    original: Function, self: ReportClient, context: RequestContext, resources: ResourceRequest
) -> Any:
    """Join the candidates of the hosts with our name and with the other name.

    If the second query fails, the candidates of the first query are the answer. Without
    candidates, the answer is what Nova returns for a failed query.
    """
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


def read_further(
    client: ReportClient, context: RequestContext, query: str, version: str
) -> dict[str, Any]:
    """Return Placement's answer to a query under the other name of VCPU_SHARES.

    :return: an empty answer, if the query requests no shares, or if Placement does not know the
        other name, because every host has ours.
    :raises ValueError: Placement answers with an error. Others of ``NO_ANSWER`` pass.
    """
    empty: dict[str, Any] = {"allocation_requests": [], "provider_summaries": {}}
    for other in by_each_name(query)[1:]:
        url = f"/allocation_candidates?{other}"
        response = client.get(url, version=version, global_request_id=context.global_id)
        if response.status_code == 200:
            return {**empty, **response.json()}
        # The query with our name, which has the same form, was no bad request.
        if response.status_code != 400:
            raise ValueError(f"{response.status_code} {response.text}")
    return empty


SEAM = steps.candidates(_ask_by_each_name)
