"""Seam that names, in the fault of a server without a host, what the hosts lack.

After an empty answer, nova-scheduler sends the query again without each resource class and each
required trait alone, and then without two of them. The constraints are those of
:mod:`cpu_tiers.translators.constraints`, which the commands name, too, and Placement's answer
decides. What a user cannot change is not named, such as the aggregates of a zone and forbidden
traits. For a server with dedicated CPUs, nova-scheduler sends two queries, with PCPU and then with
VCPU. If both answers are empty, the constraints of both are named (decision D84).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from typing import Any, NamedTuple
from urllib.parse import parse_qsl
from weakref import WeakKeyDictionary

from nova import exception
from nova.context import RequestContext

from cpu_tiers.model.names import NUMA_SERVER, by_each_name
from cpu_tiers.model.numa import COUNT_TRAIT
from cpu_tiers.model.request import CandidateQuery, GroupDraft
from cpu_tiers.nova import steps
from cpu_tiers.nova.no_answer import NO_ANSWER, read
from cpu_tiers.nova.notes import query_of
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import ReportClient, ResourceRequest
from cpu_tiers.nova.scheduler.refusal import REASONS
from cpu_tiers.nova.seams import Function
from cpu_tiers.translators.constraints import constraints, without

LOG = logging.getLogger(__name__)

_OWNER = "OWNER_NOVA"
"""The trait by which Nova 34 asks for hosts of its own; no user can leave it out."""

_OF_GROUP = ("resources", "required", "member_of", "in_tree")

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
    requests = [first, resources] if is_second else [resources]
    queries = [read_query(request.to_querystring()) for request in requests]
    alone, together = REASONS.do(lambda: _lacking(self, context, queries)) or ((), ())
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


class NovasQuery(NamedTuple):
    """A query of nova-scheduler.

    :param others: the parameters that :class:`CandidateQuery` does not have, as a query string.
    """

    query: CandidateQuery
    others: str = ""

    def constraints(self) -> dict[str, str]:
        """Return the names of the constraints that a user can change, each in words."""
        amounts = self.query.resources()
        traits = self.query.root_required.union(*(g.required for g in self.query.groups))
        words = {name: f"{amount} {name}" for name, amount in amounts.items()}
        words |= {
            t: f"{t.removeprefix(COUNT_TRAIT)} NUMA nodes"
            for t in traits
            if t.startswith(COUNT_TRAIT)
        }
        return {
            name: words.get(name, f"the trait {name}")
            for name in constraints([self.query])
            if name != NUMA_SERVER
            if name in amounts or (name in traits and name != _OWNER) or name.startswith("in:")
        }


def read_query(text: str) -> NovasQuery:
    """Return the query of a query string of Nova."""
    drafts: dict[str, GroupDraft] = {}
    of_groups: dict[str, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    subtrees, others = [], []
    for key, value in parse_qsl(text):
        prefix = next((p for p in _OF_GROUP if key.startswith(p)), "")
        if key == "group_policy":
            whole[key] = value
        elif key == "same_subtree":
            subtrees.append(tuple(value.split(",")))
        elif key == "root_required":
            required, forbidden = _traits(value)
            whole |= {"root_required": required, "root_forbidden": forbidden}
        elif not prefix or (prefix == "member_of" and value.startswith("!")):
            others += [f"&{key}={value}"] if key != "limit" else []
        else:
            suffix = key.removeprefix(prefix)
            draft = drafts.setdefault(suffix, GroupDraft())
            _read_group(draft, of_groups.setdefault(suffix, {}), prefix, value)
    groups = [drafts[suffix].freeze(suffix)._replace(**of_groups[suffix]) for suffix in drafts]
    groups.sort(key=lambda group: bool(group.suffix))
    query = CandidateQuery(groups=tuple(groups), same_subtree=tuple(subtrees), **whole)
    return NovasQuery(query, "".join(others))


def _read_group(draft: GroupDraft, fields: dict[str, Any], prefix: str, value: str) -> None:
    """Read a parameter of a request group into its draft, or into its other fields."""
    names = frozenset(value.removeprefix("in:").split(","))
    if prefix == "resources":
        amounts = (text.partition(":") for text in value.split(","))
        draft.resources.update({name: int(amount) for name, _, amount in amounts})
    elif prefix == "in_tree":
        fields["in_tree"] = value
    elif prefix == "member_of":
        fields["member_of"] = fields.get("member_of", frozenset()) | {names}
    elif value.startswith("in:"):
        draft.any_of.add(names)
    else:
        required, forbidden = _traits(value)
        draft.required |= required
        draft.forbidden |= forbidden


def _traits(text: str) -> tuple[frozenset[str], frozenset[str]]:
    names = text.split(",")
    forbidden = frozenset(name[1:] for name in names if name.startswith("!"))
    return frozenset(name for name in names if not name.startswith("!")), forbidden


def _lacking(
    client: ReportClient, context: RequestContext, queries: Sequence[NovasQuery]
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the constraints without which alone a host has room, or else two of them."""
    alone: list[str] = []
    for relaxed, words in islice(relaxations(queries), MOST_QUERIES):
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
        ours, *others = by_each_name(text)
        answer = read(client, context, f"/allocation_candidates?{ours}", version=version)
        if others and not answer["allocation_requests"]:
            from cpu_tiers.nova.scheduler.share_names import read_further

            answer = read_further(client, context, ours, version)
        return bool(answer["allocation_requests"])
    except NO_ANSWER as error:
        LOG.warning("Placement does not tell whether %s: %r", question, error)
        return None


def relaxations(queries: Sequence[NovasQuery]) -> Iterator[tuple[NovasQuery, tuple[str, ...]]]:
    """Yield each query without each constraint alone, and then without each two of them.

    The constraints are told in words. A query that would request nothing is left out: Placement
    refuses it.
    """
    for size in (1, 2):
        for each in queries:
            words, relaxing = each.constraints(), constraints([each.query])
            for names in combinations(words, size):
                (query,) = without([each.query], [relaxing[name] for name in names])
                if any(group.resources for group in query.groups):
                    yield each._replace(query=query), tuple(words[name] for name in names)


SEAM = steps.candidates(_name_constraints)
