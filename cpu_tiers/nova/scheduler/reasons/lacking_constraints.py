"""Seam that names, in the fault of a server without a host, what the hosts lack (decision D84).

After an empty answer, nova-scheduler sends the query again without each resource class and each
required trait alone, and then without two of them. What a user cannot change is not named, such as
the aggregates of a zone and forbidden traits. For a server with dedicated CPUs, nova-scheduler
sends two queries, with PCPU and then with VCPU. If both answers are empty, the constraints of both
are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from nova import exception
from nova.context import RequestContext
from oslo_log import log as logging

from cpu_tiers.nova import steps
from cpu_tiers.nova.no_answer import NO_ANSWER, read
from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import ReportClient, ResourceRequest
from cpu_tiers.nova.scheduler.refusal import REASONS
from cpu_tiers.nova.seams import Function

if TYPE_CHECKING:
    from cpu_tiers.translators.constraints import NovasQuery

LOG = logging.getLogger(__name__)

MOST_QUERIES = 16
"""So many further queries are sent for a server."""

_FIRSTS: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""The first of two requests by the context of a call of ``select_destinations``; ``None`` if the
answer to the request was not empty."""


def _name_constraints(
    original: Function, self: ReportClient, context: RequestContext, resources: ResourceRequest
) -> Any:
    """Raise an error with a reason in place of an empty answer, if a constraint is the reason."""
    answer = original(self, context, resources)
    if _is_first_of_two(resources):
        _FIRSTS[context] = resources if is_empty(answer) else None
        return answer
    is_second = context in _FIRSTS
    first = _FIRSTS.pop(context, None)
    explained = first if is_second else resources
    if not is_empty(answer) or explained is None or query_of(explained).is_unexplained:
        return answer
    from cpu_tiers.translators.constraints import read_query, relaxed_queries  # rarely needed

    requests = [first, resources] if is_second else [resources]
    relaxed = relaxed_queries([read_query(request.to_querystring()) for request in requests])
    alone, together = REASONS.do(lambda: _lacking(self, context, relaxed)) or ((), ())
    if alone or together:
        which = "one of these" if alone else "these two"
        reason = f"A host would have room without {which}: {', '.join(alone or together)}"
        LOG.info("Got no allocation candidates from Placement. %s", reason)
        raise exception.NoValidHost(reason=reason)
    return answer


def is_empty(answer: Any) -> bool:
    """Tell whether Placement has answered without any candidate."""
    # None is a failed connection (Nova's safe_connect), (None, None, None) a refusal.
    return answer is not None and answer[0] is not None and not answer[0]


def _is_first_of_two(request: ResourceRequest) -> bool:
    """Tell whether ``SchedulerManager.select_destinations`` sends a second query after a request.

    The server has dedicated CPUs, and the second query has VCPU in place of PCPU.
    """
    has_fallback = not CONF.workarounds.disable_fallback_pcpu_query
    return bool(request.cpu_pinning_requested and has_fallback)


def _lacking(
    client: ReportClient,
    context: RequestContext,
    queries: Iterable[tuple[NovasQuery, tuple[str, ...]]],
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the constraints without which alone a host has room, or else two of them.

    :param queries: each query with the constraints, in words, that it leaves out.
    """
    alone: list[str] = []
    for relaxed, words in islice(queries, MOST_QUERIES):
        if (alone and len(words) > 1) or words[0] in alone:
            continue
        question = f"only {' and '.join(words)} is lacking"
        is_served = _has_host(client, context, relaxed, question)
        if is_served is None:  # nova-conductor waits for the answer: do not wait once more
            break
        if is_served and len(words) > 1:
            return (), words
        alone += words if is_served else ()
    return alone, ()


def _has_host(
    client: ReportClient, context: RequestContext, relaxed: NovasQuery, question: str
) -> bool | None:
    """Tell whether a query has a candidate; ``None`` if Placement does not answer.

    :param question: what the answer would tell, for the log.
    """
    try:
        text = f"{relaxed.query.to_query_string()}{relaxed.others}&limit=1"
        version = ".".join(map(str, relaxed.query.microversion))
        answer = read(client, context, f"/allocation_candidates?{text}", version=version)
        return bool(answer["allocation_requests"])
    except NO_ANSWER as error:
        LOG.warning("Placement does not tell whether %s: %r", question, error)
        return None


SEAM = steps.candidates(_name_constraints)
