"""Empty answers of Placement: when a further query tells why there is no candidate."""

import logging
from typing import Any

from cpu_tiers.model.names import by_each_name
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.nova.no_answer import NO_ANSWER, read
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import share_names
from cpu_tiers.nova.scheduler.numa.numa_groups import numa_request_of

LOG = logging.getLogger(__name__)

_MOST_NODES = 2
"""With more NUMA nodes, Placement may need long for a query with less constraints."""

_SECOND = "cpu_tiers_second"
"""The attribute of Nova's ResourceRequest whose answer Nova adds to the answer of another one."""


def leave_unexplained(request: Any) -> None:
    """Send no further query after an empty answer to a request."""
    setattr(request, _SECOND, True)


def is_empty(answer: Any) -> bool:
    """Tell whether Placement has answered that there are no candidates."""
    # None is a failed connection (Nova's safe_connect), (None, None, None) a refusal.
    return answer is not None and answer[0] is not None and not answer[0]


def is_explained(request: Any) -> bool:
    """Tell whether the answer to a query with less constraints would tell the reason.

    The answer does not tell the reason if nova-scheduler joins or selects the candidates of
    several queries.
    """
    if getattr(request, _SECOND, False):
        return False
    if is_first_of_two(request):
        return False
    return tells_reason(request)


def is_first_of_two(request: Any) -> bool:
    """Tell whether ``SchedulerManager.select_destinations`` sends a second query after a request.

    The server has dedicated CPUs, and the second query has VCPU in place of PCPU.
    """
    has_fallback = not CONF.workarounds.disable_fallback_pcpu_query
    return bool(request.cpu_pinning_requested and has_fallback)


def tells_reason(request: Any) -> bool:
    """Tell whether a single answer decides about a request, and does so in a short time.

    It is not so for NUMA nodes for which several queries are joined or selected.
    """
    numa_request = numa_request_of(request)
    if numa_request is None:
        return True
    nodes = numa_request.server.nodes if numa_request.server else ()
    return not numa_request.apart and len(nodes) <= _MOST_NODES


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
            or share_names.read_further(client, context, ours, version)["allocation_requests"]
        )
    except NO_ANSWER as error:
        LOG.warning("Placement does not tell whether %s: %r", question, error)
        return None
