"""What is asked of Placement: request groups and the query they make.

Source: Placement API reference, ``GET /allocation_candidates``, microversion
1.36, and 1.39 where one of several traits will do. Every name in a group
consists of letters, digits, ``_`` and ``-`` (checked where it comes in), so a
query needs no escaping.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple


class RequestGroup(NamedTuple):
    """Resources and traits that belong together.

    :param suffix: what stands behind ``resources`` and ``required``; empty for
        the unsuffixed group, whose resources may come from several providers
        of a tree.
    :param resources: resource class to amount. A group without any asks for a
        provider by its traits alone; it must stand in a :class:`SameSubtree`.
    :param any_of: sets of traits; of each, one at least is required.
    :param requester_id: who asks, where it is not the flavor: a port, or a
        group of a port.
    :param in_tree: the uuid of a provider, to whose tree the one that serves
        belongs, such as the host where a server is.
    """

    suffix: str = ""
    resources: Mapping[str, int] = MappingProxyType({})
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: frozenset[frozenset[str]] = frozenset()
    requester_id: str | None = None
    in_tree: str | None = None

    @property
    def has_traits(self) -> bool:
        """Whether the group says anything of traits."""
        return bool(self.required or self.forbidden or self.any_of)

    def parameters(self) -> Iterable[tuple[str, str]]:
        """Yield the group's query parameters."""
        if self.resources:
            amounts = (f"{name}:{self.resources[name]}" for name in sorted(self.resources))
            yield f"resources{self.suffix}", ",".join(amounts)
        if self.required or self.forbidden:
            yield f"required{self.suffix}", _traits(self.required, self.forbidden)
        if self.any_of:
            for traits in sorted(map(sorted, self.any_of)):
                yield f"required{self.suffix}", f"in:{','.join(traits)}"
        if self.in_tree:
            yield f"in_tree{self.suffix}", self.in_tree


class SameSubtree(NamedTuple):
    """Groups whose providers stand in one subtree, one of them at its top.

    :param suffixes: of the groups.
    """

    suffixes: tuple[str, ...]


class GroupDraft:
    """A request group while it is put together."""

    __slots__ = ("any_of", "forbidden", "requester_id", "required", "resources")

    def __init__(self) -> None:
        """Start with nothing."""
        self.resources: dict[str, int] = {}
        self.required: set[str] = set()
        self.forbidden: set[str] = set()
        self.any_of: set[frozenset[str]] = set()
        self.requester_id: str | None = None

    def freeze(self, suffix: str) -> RequestGroup:
        """Return the finished group."""
        return RequestGroup(
            suffix=suffix,
            resources=self.resources,
            required=frozenset(self.required),
            forbidden=frozenset(self.forbidden),
            any_of=frozenset(self.any_of),
            requester_id=self.requester_id,
        )


class CandidateQuery(NamedTuple):
    """One ``GET /allocation_candidates``.

    :param groups: the unsuffixed group first.
    :param group_policy: ``none`` or ``isolate``; Placement demands one where
        there are two suffixed groups.
    :param same_subtree: tuples of suffixes whose providers share a subtree.
    :param root_required: traits of the root provider, which need not serve a group.
    :param root_forbidden: those it must not have.
    """

    groups: tuple[RequestGroup, ...]
    group_policy: str | None = None
    same_subtree: tuple[tuple[str, ...], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()

    @property
    def microversion(self) -> tuple[int, int]:
        """The oldest microversion of Placement that can answer."""
        return (1, 39) if any(group.any_of for group in self.groups) else (1, 36)

    @property
    def in_subtrees(self) -> frozenset[str]:
        """The suffixes that some same_subtree names."""
        return frozenset(suffix for suffixes in self.same_subtree for suffix in suffixes)

    def parameters(self) -> Iterable[tuple[str, str]]:
        """Yield every query parameter, group by group."""
        for group in self.groups:
            yield from group.parameters()
        if self.root_required or self.root_forbidden:
            yield "root_required", _traits(self.root_required, self.root_forbidden)
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
        """Return every trait that some group requires, or is content with."""
        return self.root_required.union(
            *(traits for group in self.groups for traits in (group.required, *group.any_of))
        )


def _traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    return ",".join([*sorted(required), *(f"!{name}" for name in sorted(forbidden))])
