"""The constraints of a query for allocation candidates, and the query without each of them.

A constraint is a resource class, a trait, a set of aggregates, the request group of a port, a NUMA
node of the guest, the group policy ``isolate`` or a same-subtree parameter. :func:`read_query`
reads a query of nova-scheduler, for the fault of a server without a host. Pure.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from cpu_tiers.model.names import NUMA_SERVER
from cpu_tiers.model.numa import COUNT_TRAIT
from cpu_tiers.model.request import CandidateQuery, GroupDraft, RequestGroup

Relaxation = Callable[[CandidateQuery], CandidateQuery]

_OF_NODE = re.compile(r"_(?:PROC|MEM|NUMA)(\d+)")
"""The suffixes of the groups of a NUMA node of the guest: :mod:`cpu_tiers.translators.numa`."""

_OWNER = "OWNER_NOVA"
"""The trait by which Nova 34 asks for hosts of its own; no user can leave it out."""

_OF_GROUP = ("resources", "required", "member_of", "in_tree")


def constraints(queries: Sequence[CandidateQuery]) -> Mapping[str, Relaxation]:
    """Return the function that takes a constraint out of a query, by the constraint's name.

    Resource classes come first, and whole request groups last: a class or a trait says more
    about a host than the group does.

    :param queries: the queries for a server; a host with a candidate of any query is enough.
    """
    relaxations: dict[str, Relaxation] = {}
    for relaxations_of in (_amounts, _traits, _aggregates, _groupings, _groups):
        for query in queries:
            relaxations |= dict(relaxations_of(query))
    return relaxations


def without(
    queries: Iterable[CandidateQuery], relaxations: Iterable[Relaxation]
) -> tuple[CandidateQuery, ...]:
    """Return the queries without some constraints."""
    for relax in relaxations:
        queries = map(relax, queries)
    return tuple(queries)


def node_of(group: RequestGroup) -> int | None:
    """Return the number of the guest's NUMA node, from 0, that a group belongs to."""
    match = _OF_NODE.fullmatch(group.suffix)
    return int(match[1]) - 1 if match else None


def node_name(number: int) -> str:
    """Return the name of the constraint of a NUMA node of the guest."""
    return f"NUMA node {number}"


def any_of_name(traits: Iterable[str]) -> str:
    """Return the name of the constraint that any of several traits meets."""
    return f"in:{','.join(sorted(traits))}"


def _amounts(query: CandidateQuery) -> Iterable[tuple[str, Relaxation]]:
    for name in query.resources():
        yield name, _without_class(name)


def _traits(query: CandidateQuery) -> Iterable[tuple[str, Relaxation]]:
    groups = query.groups
    for name in sorted(query.root_required.union(*(group.required for group in groups))):
        yield name, _without_element("required", name)
    for name in sorted(query.root_forbidden.union(*(group.forbidden for group in groups))):
        yield f"!{name}", _without_element("forbidden", name)
    for traits in _sets(group.any_of for group in groups):
        yield any_of_name(traits), _without_element("any_of", frozenset(traits))


def _aggregates(query: CandidateQuery) -> Iterable[tuple[str, Relaxation]]:
    for names in _sets(group.member_of for group in query.groups):
        yield f"member_of={any_of_name(names)}", _without_element("member_of", frozenset(names))
    for name in sorted(frozenset[str]().union(*(g.not_member_of for g in query.groups))):
        yield f"!member_of={name}", _without_element("not_member_of", name)


def _groupings(query: CandidateQuery) -> Iterable[tuple[str, Relaxation]]:
    if query.group_policy == "isolate":
        yield "group_policy=isolate", lambda query: query._replace(group_policy="none")
    for subtree in query.same_subtree:
        if len(subtree) > 1:
            yield f"same_subtree={','.join(subtree)}", _without_subtree(subtree)


def _groups(query: CandidateQuery) -> Iterable[tuple[str, Relaxation]]:
    nodes: dict[int, set[str]] = {}
    for group in query.groups:
        if group.requester_id is not None:
            yield f"port {group.requester_id}", _without_groups({group.suffix})
        if (number := node_of(group)) is not None:
            nodes.setdefault(number, set()).add(group.suffix)
    for number, suffixes in nodes.items():
        yield node_name(number), _without_groups(suffixes)


def _sets(conditions: Iterable[frozenset[frozenset[str]]]) -> list[list[str]]:
    return sorted(map(sorted, frozenset[frozenset[str]]().union(*conditions)))


def _without_class(name: str) -> Relaxation:
    return _changing_groups(
        lambda group: group._replace(
            resources={other: n for other, n in group.resources.items() if other != name}
        )
    )


def _without_element(field: str, element: object) -> Relaxation:
    """Take an element out of a field of all groups, and of the root provider's if it has one."""

    def of(value: RequestGroup | CandidateQuery, name: str) -> dict[str, Any]:
        return {name: getattr(value, name) - {element}} if hasattr(value, name) else {}

    without_in_groups = _changing_groups(lambda group: group._replace(**of(group, field)))
    return lambda query: without_in_groups(query._replace(**of(query, f"root_{field}")))


def _without_groups(suffixes: Iterable[str]) -> Relaxation:
    removed = frozenset(suffixes)
    return lambda query: _clean(
        query, [group for group in query.groups if group.suffix not in removed]
    )


def _without_subtree(suffixes: tuple[str, ...]) -> Relaxation:
    def relax(query: CandidateQuery) -> CandidateQuery:
        others = tuple(subtree for subtree in query.same_subtree if subtree != suffixes)
        return _clean(query._replace(same_subtree=others), query.groups)

    return relax


def _changing_groups(change: Callable[[RequestGroup], RequestGroup]) -> Relaxation:
    return lambda query: _clean(query, [change(group) for group in query.groups])


def _clean(query: CandidateQuery, groups: Iterable[RequestGroup]) -> CandidateQuery:
    """Return the query with these groups, as Placement accepts the query.

    A group without resources must be in a same-subtree parameter beside a group with resources,
    and a same-subtree parameter names groups of the query. Traits of the unsuffixed group without
    resources become traits of the root provider, and aggregates go to the first other group.
    Without another group, the unsuffixed group keeps its aggregates and its sets of traits; the
    query is not sent.
    """
    groups = tuple(groups)
    with_amounts = {group.suffix for group in groups if group.resources}
    # Placement looks for a group without resources in the whole cloud if its subtree has no other.
    beside = {s for tree in query.same_subtree if not with_amounts.isdisjoint(tree) for s in tree}
    kept = [
        group
        for group in groups
        if group.resources or (group.has_traits and group.suffix in beside)
    ]
    suffixes = {group.suffix for group in kept}
    for group in groups:
        if group.suffix or group.resources:
            continue
        query = query._replace(
            root_required=query.root_required | group.required,
            root_forbidden=query.root_forbidden | group.forbidden,
        )
        if kept and group.has_aggregates:
            kept[0] = kept[0]._replace(
                member_of=kept[0].member_of | group.member_of,
                not_member_of=kept[0].not_member_of | group.not_member_of,
            )
        elif not kept and (group.has_aggregates or group.any_of):
            nothing = frozenset[str]()
            kept = [group._replace(resources={}, required=nothing, forbidden=nothing)]
    subtrees = (
        tuple(suffix for suffix in subtree if suffix in suffixes) for subtree in query.same_subtree
    )
    return query._replace(groups=tuple(kept), same_subtree=tuple(filter(None, subtrees)))


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
    group_parts: dict[str, dict[str, Any]] = {}
    whole: dict[str, Any] = {}
    subtrees, others = [], []
    for key, value in parse_qsl(text):
        prefix = _group_prefix(key)
        if key == "group_policy":
            whole[key] = value
        elif key == "same_subtree":
            subtrees.append(tuple(value.split(",")))
        elif key == "root_required":
            required, forbidden = _read_traits(value)
            whole |= {"root_required": required, "root_forbidden": forbidden}
        elif not prefix or (prefix == "member_of" and value.startswith("!")):
            others += [f"&{key}={value}"] if key != "limit" else []
        else:
            suffix = key.removeprefix(prefix)
            draft = drafts.setdefault(suffix, GroupDraft())
            _read_group(draft, group_parts.setdefault(suffix, {}), prefix, value)
    groups = [drafts[suffix].freeze(suffix)._replace(**group_parts[suffix]) for suffix in drafts]
    groups.sort(key=lambda group: bool(group.suffix))
    query = CandidateQuery(groups=tuple(groups), same_subtree=tuple(subtrees), **whole)
    return NovasQuery(query, "".join(others))


def _group_prefix(key: str) -> str:
    """Return what precedes the suffix of a group in a parameter; empty if it is of no group."""
    return next((prefix for prefix in _OF_GROUP if key.startswith(prefix)), "")


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
        required, forbidden = _read_traits(value)
        draft.required |= required
        draft.forbidden |= forbidden


def _read_traits(text: str) -> tuple[frozenset[str], frozenset[str]]:
    names = text.split(",")
    forbidden = frozenset(name[1:] for name in names if name.startswith("!"))
    return frozenset(name for name in names if not name.startswith("!")), forbidden


def relaxed_queries(queries: Sequence[NovasQuery]) -> Iterator[tuple[NovasQuery, tuple[str, ...]]]:
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
