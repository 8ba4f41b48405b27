"""What is asked of Placement: request groups and the query they make.

Source: Placement API reference, ``GET /allocation_candidates``, microversion
1.36. Every name in a group consists of letters, digits, ``_`` and ``-``
(checked where it comes in), so a query needs no escaping.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class RequestGroup(NamedTuple):
    """Resources and traits that belong together.

    :param suffix: what stands behind ``resources`` and ``required``; empty for
        the unsuffixed group, whose resources may come from several providers
        of a tree.
    :param resources: resource class to amount.
    """

    suffix: str = ""
    resources: Mapping[str, int] = MappingProxyType({})
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()

    def parameters(self) -> Iterable[tuple[str, str]]:
        """Yield the group's query parameters."""
        if self.resources:
            amounts = (f"{name}:{self.resources[name]}" for name in sorted(self.resources))
            yield f"resources{self.suffix}", ",".join(amounts)
        if self.required or self.forbidden:
            traits = sorted(self.required) + [f"!{name}" for name in sorted(self.forbidden)]
            yield f"required{self.suffix}", ",".join(traits)


class GroupDraft:
    """A request group while it is put together."""

    __slots__ = ("forbidden", "required", "resources")

    def __init__(self) -> None:
        """Start with nothing."""
        self.resources: dict[str, int] = {}
        self.required: set[str] = set()
        self.forbidden: set[str] = set()

    def freeze(self, suffix: str) -> RequestGroup:
        """Return the finished group."""
        return RequestGroup(
            suffix=suffix,
            resources=self.resources,
            required=frozenset(self.required),
            forbidden=frozenset(self.forbidden),
        )


class CandidateQuery(NamedTuple):
    """One ``GET /allocation_candidates``.

    :param groups: the unsuffixed group first.
    :param group_policy: ``none`` or ``isolate``; Placement demands one where
        two suffixed groups carry resources.
    :param same_subtree: tuples of suffixes whose providers share a subtree.
    """

    groups: tuple[RequestGroup, ...]
    group_policy: str | None = None
    same_subtree: tuple[tuple[str, ...], ...] = ()

    def parameters(self) -> Iterable[tuple[str, str]]:
        """Yield every query parameter, group by group."""
        for group in self.groups:
            yield from group.parameters()
        for suffixes in self.same_subtree:
            yield "same_subtree", ",".join(suffixes)
        if self.group_policy is not None:
            yield "group_policy", self.group_policy

    def to_query_string(self) -> str:
        """Return the query, ready to stand behind the ``?``."""
        return "&".join(f"{key}={value}" for key, value in self.parameters())

    def resources(self) -> dict[str, int]:
        """Return the amount of each class over all groups."""
        total: dict[str, int] = {}
        for group in self.groups:
            for name, amount in group.resources.items():
                total[name] = total.get(name, 0) + amount
        return total

    def required_traits(self) -> frozenset[str]:
        """Return every trait that some group requires."""
        return frozenset().union(*(group.required for group in self.groups))
