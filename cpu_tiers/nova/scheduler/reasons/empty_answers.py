"""Empty answers of Placement: when a further query tells why there is no candidate."""

import logging
from typing import Any

from cpu_tiers.model.names import by_each_name
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.nova.no_answer import NO_ANSWER, read, read_further
from cpu_tiers.nova.options import CONF

LOG = logging.getLogger(__name__)


def is_empty(answer: Any) -> bool:
    """Tell whether Placement has answered that there are no candidates."""
    # None is a failed connection (Nova's safe_connect), (None, None, None) a refusal.
    return answer is not None and answer[0] is not None and not answer[0]


def is_first_of_two(request: Any) -> bool:
    """Tell whether ``SchedulerManager.select_destinations`` sends a second query after a request.

    The server has dedicated CPUs, and the second query has VCPU in place of PCPU.
    """
    has_fallback = not CONF.workarounds.disable_fallback_pcpu_query
    return bool(request.cpu_pinning_requested and has_fallback)


def has_host(
    client: Any, context: Any, query: CandidateQuery, rest: str, question: str
) -> bool | None:
    """Tell whether a query has a candidate; ``None`` if Placement does not answer.

    :param rest: further parameters of the query string, each after its ``&``.
    :param question: what the answer would tell, for the log.
    """
    try:
        text = f"{query.to_query_string()}{rest}&limit=1"
        version = ".".join(map(str, query.microversion))
        ours = by_each_name(text)[0]
        answer = read(client, context, f"/allocation_candidates?{ours}", version=version)
        return bool(
            answer["allocation_requests"]
            or read_further(client, context, ours, version)["allocation_requests"]
        )
    except NO_ANSWER as error:
        LOG.warning("Placement does not tell whether %s: %r", question, error)
        return None
