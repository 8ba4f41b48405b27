"""Seam that names, in the fault of a server without a host, what the hosts lack.

After an empty answer, nova-scheduler sends the query again without each resource class and without
each required trait alone. What a user cannot change is not named, such as the aggregates of a zone
and forbidden traits. For a server with dedicated CPUs, nova-scheduler sends two queries, with PCPU
and then with VCPU. If both answers are empty, the constraints of both are named.
"""

import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode
from weakref import WeakKeyDictionary

from nova import exception

from cpu_tiers.nova.scheduler.empty_answers import (
    REASONS,
    has_host,
    is_empty,
    is_explained,
    is_first_of_two,
    tells_reason,
)
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)

MOST_QUERIES = 16
"""So many further queries are sent for a server."""

Parameters = Sequence[tuple[str, str]]

_OF_GROUP = re.compile(r"(?:resources|required|member_of|in_tree)(.*)")


def _name_constraints(original: Callable[..., Any]) -> Callable[..., Any]:
    """Raise an error with a reason in place of an empty answer, if a constraint is the reason."""
    # By the context of a call of select_destinations, the first of two requests; None if it had
    # an answer that is not empty.
    firsts: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        answer = original(self, context, resources)
        if is_first_of_two(resources):
            firsts[context] = resources if is_empty(answer) else None
            return answer
        is_second = context in firsts
        first = firsts.pop(context, None)
        if is_second:
            is_reason = first is not None and tells_reason(first)
        else:
            is_reason = is_explained(resources)
        if not is_empty(answer) or not is_reason:
            return answer
        requests = [first, resources] if is_second else [resources]
        if names := REASONS.do(lambda: _lacking(self, context, requests)):
            reason = f"A host would have room without one of these: {', '.join(names)}"
            LOG.info("Got no allocation candidates from Placement. %s", reason)
            raise exception.NoValidHost(reason=reason)
        return answer

    return get_allocation_candidates


def _lacking(client: Any, context: Any, requests: Iterable[Any]) -> list[str]:
    """Return the constraints without which a host would have room for one of the requests."""
    names: list[str] = []
    sent = 0
    for request in requests:
        for name, relaxed in relaxations(parse_qsl(request.to_querystring())):
            if name in names:
                continue
            if sent == MOST_QUERIES:
                return names
            sent += 1
            found = has_host(client, context, urlencode(relaxed), f"only {name} is lacking")
            if found is None:  # nova-conductor waits for the answer: do not wait once more
                return names
            if found:
                names.append(name)
    return names


def relaxations(query: Parameters) -> Iterator[tuple[str, Parameters]]:
    """Yield each constraint of a query by name, and the query without the constraint alone.

    The query asks for a single candidate.
    """
    for name, amount in _amounts(query).items():
        if relaxed := _without_class(query, name):
            yield f"{amount} {name}", _limited(relaxed)
    for trait in _required(query):
        yield f"the trait {trait}", _limited(_without_trait(query, trait))


def _amounts(query: Parameters) -> dict[str, int]:
    """Return the amount of each resource class, over all groups."""
    amounts: dict[str, int] = {}
    for key, value in query:
        if _is_amount(key):
            for name, _, amount in (text.partition(":") for text in value.split(",")):
                amounts[name] = amounts.get(name, 0) + int(amount)
    return amounts


def _required(query: Parameters) -> list[str]:
    """Return the required traits, each once."""
    values = [value for key, value in query if key.startswith(("required", "root_required"))]
    traits = [
        trait
        for value in values
        for trait in ([value] if value.startswith("in:") else value.split(","))
        if not trait.startswith("!")
    ]
    return list(dict.fromkeys(traits))


def _without_class(query: Parameters, name: str) -> Parameters:
    """Return the query without a resource class; nothing if no resources are left."""
    changed = [
        (key, _without(value, f"{name}:") if _is_amount(key) else value) for key, value in query
    ]
    kept = {key.removeprefix("resources") for key, value in changed if value and _is_amount(key)}
    kept_in_subtrees = kept | {
        s for key, v in query if key == "same_subtree" for s in v.split(",")
    }
    # Placement refuses a group with traits and without resources that is in no subtree.
    return [
        (key, value)
        for key, value in changed
        if value and kept and _suffix(key) in {None, *kept_in_subtrees}
    ]


def _without_trait(query: Parameters, trait: str) -> Parameters:
    """Return the query without a required trait, or without a set of which one is required."""
    changed = [
        (key, value if not key.startswith(("required", "root_required")) else _left(value, trait))
        for key, value in query
    ]
    groups = {_suffix(key) for key, value in changed if value}
    return [
        (key, ",".join(s for s in value.split(",") if s in groups))
        if key == "same_subtree"
        else (key, value)
        for key, value in changed
        if value
    ]


def _left(value: str, trait: str) -> str:
    if value.startswith("in:"):
        return "" if value == trait else value
    return ",".join(each for each in value.split(",") if each != trait)


def _without(amounts: str, prefix: str) -> str:
    return ",".join(text for text in amounts.split(",") if not text.startswith(prefix))


def _is_amount(key: str) -> bool:
    return key.startswith("resources")


def _suffix(key: str) -> str | None:
    """Return the suffix of the group that a parameter belongs to; ``None`` for all groups."""
    match = _OF_GROUP.fullmatch(key)
    return match[1] if match else None


def _limited(query: Parameters) -> Parameters:
    return [*((key, value) for key, value in query if key != "limit"), ("limit", "1")]


SEAM = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters=("self", "context", "resources"),
    wrap=_name_constraints,
    why=(
        "A server without candidates gets a fault without a reason; the wrapper names the "
        "resource classes and traits without which a host would have room."
    ),
    unseen="If another function sends the query, the fault of the server has no reason.",
    layer=3,  # after the wrapper that names the shares
)
"""The seam around the query for allocation candidates."""
