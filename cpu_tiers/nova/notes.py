"""What cpu-tiers keeps on objects of Nova while nova-scheduler looks for hosts.

An object of Nova has a single attribute of cpu-tiers, ``cpu_tiers``, with notes of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryNotes:
    """The values missing in Nova's ``ResourceRequest``; a copy of the request has its own value.

    :param names: the custom names to create before the query is sent, as URLs of Placement.
    :param ports: the suffixes of the groups of ports that Placement would not understand.
    :param numa: what a query for NUMA nodes cannot express; ``None`` for a request of Nova.
    :param is_unexplained: no reason is looked for if the answer is empty, because nova-scheduler
        adds the answer to another one, or selects among the candidates.
    """

    names: frozenset[str] = frozenset()
    ports: frozenset[str] = frozenset()
    numa: Any = None
    is_unexplained: bool = False


@dataclass(slots=True, kw_only=True)
class SearchNotes:
    """What Nova's ``RequestSpec`` does not have, for all servers of the request.

    :param has_warned: the faults of the flavor are in the log.
    :param has_kept_order: the log says that the candidates of hosts are not sorted.
    :param decision: the record of the decision that is being made.
    :param candidates: the candidates with NUMA nodes of each host, by the ``id`` of the first.
    """

    has_warned: bool = False
    has_kept_order: bool = False
    decision: Any = None
    candidates: dict[int, list[Any]] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class HostNotes:
    """The values missing in Nova's ``HostState``.

    :param scores: the scores of all hosts of the request; ``None`` if Placement was not asked, or
        if another function than Nova's made the host state.
    :param left: the provider summaries that the former servers of the request left.
    :param refused: the candidates with NUMA nodes that the filters have refused.
    :param left_at_refusal: ``left`` when the filters refused the candidates.
    """

    scores: Any = None
    left: Mapping[str, Any] | None = None
    refused: list[Any] = field(default_factory=list)
    left_at_refusal: Mapping[str, Any] | None = None


def query_of(request: Any) -> QueryNotes:
    """Return the notes on Nova's ``ResourceRequest``."""
    return getattr(request, "cpu_tiers", QueryNotes())


def note(request: Any, **changes: Any) -> None:
    """Change fields of the notes on Nova's ``ResourceRequest``."""
    request.cpu_tiers = replace(query_of(request), **changes)


def search_of(request_spec: Any) -> SearchNotes:
    """Return the notes on Nova's ``RequestSpec``."""
    return _value_of(request_spec, SearchNotes)


def host_of(host_state: Any) -> HostNotes:
    """Return the notes on Nova's ``HostState``."""
    return _value_of(host_state, HostNotes)


def _value_of(owner: Any, kind: type[_Value]) -> _Value:
    value: _Value = getattr(owner, "__dict__", {}).setdefault("cpu_tiers", kind())
    return value
