"""Request groups, and their query for allocation candidates.

Source: Placement API reference, ``GET /allocation_candidates``, microversion 1.36,
and 1.39 for groups with ``any_of``. The names in a group consist of letters, digits,
``_`` and ``-``, which is checked when a flavor, an image or a port is read, so a query
needs no escaping.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from types import MappingProxyType
from typing import NamedTuple


class RequestGroup(NamedTuple):
    """Resources and traits for the same provider.

    :param suffix: the text behind ``resources`` and ``required`` in a query. It is
        empty for the unsuffixed group, whose resources may come from several providers
        of a tree.
    :param resources: the amounts by resource class. A group without resources requests
        a provider only by its traits, and must be in a :class:`SameSubtree`.
    :param any_of: sets of traits; the provider must have at least one trait of each set.
    :param requester_id: the id of the port, or of the port's group, that requests the
        resources; ``None`` for the flavor.
    :param in_tree: the uuid of a provider, for example of the server's host: only
        providers of its tree may serve the group.
    :param member_of: sets of uuids of aggregates; the provider, or the root provider of its tree,
        must be in at least one aggregate of each set.
    :param not_member_of: uuids of aggregates; neither the provider nor, for the unsuffixed group,
        the root provider of its tree may be in any.
    """

    suffix: str = ""
    resources: Mapping[str, int] = MappingProxyType({})
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: frozenset[frozenset[str]] = frozenset()
    requester_id: str | None = None
    in_tree: str | None = None
    member_of: frozenset[frozenset[str]] = frozenset()
    not_member_of: frozenset[str] = frozenset()

    @property
    def has_traits(self) -> bool:
        """Whether the group requires or forbids any traits."""
        return bool(self.required or self.forbidden or self.any_of)

    @property
    def has_aggregates(self) -> bool:
        """Whether the group names any aggregates."""
        return bool(self.member_of or self.not_member_of)

    def parameters(self) -> Iterable[tuple[str, str]]:
        """Yield the group's query parameters."""
        if self.resources:
            amounts = [f"{name}:{amount}" for name, amount in sorted(self.resources.items())]
            yield f"resources{self.suffix}", ",".join(amounts)
        if self.required or self.forbidden:
            yield f"required{self.suffix}", _traits(self.required, self.forbidden)
        if self.any_of:
            for traits in sorted(map(sorted, self.any_of)):
                yield f"required{self.suffix}", f"in:{','.join(traits)}"
        if self.in_tree:
            yield f"in_tree{self.suffix}", self.in_tree
        for aggregates in sorted(map(sorted, self.member_of)):
            yield f"member_of{self.suffix}", f"in:{','.join(aggregates)}"
        if self.not_member_of:
            yield f"member_of{self.suffix}", f"!in:{','.join(sorted(self.not_member_of))}"


class SameSubtree(NamedTuple):
    """Request groups with providers in a common subtree.

    One of these providers is the top of the subtree.

    :param suffixes: the suffixes of the groups.
    """

    suffixes: tuple[str, ...]


class GroupDraft:
    """A request group that is still being assembled."""

    __slots__ = ("any_of", "forbidden", "requester_id", "required", "resources")

    def __init__(self) -> None:
        self.resources: dict[str, int] = {}
        self.required: set[str] = set()
        self.forbidden: set[str] = set()
        self.any_of: set[frozenset[str]] = set()
        self.requester_id: str | None = None

    def freeze(self, suffix: str) -> RequestGroup:
        """Return the finished group."""
        return RequestGroup(
            suffix,
            self.resources,
            frozenset(self.required),
            frozenset(self.forbidden),
            frozenset(self.any_of),
            self.requester_id,
        )


class CandidateQuery(NamedTuple):
    """The parameters of a ``GET /allocation_candidates``.

    :param groups: the request groups, the unsuffixed group first.
    :param group_policy: ``none`` or ``isolate``; Placement demands a policy if there are
        two suffixed groups.
    :param same_subtree: tuples of suffixes whose providers are in the same subtree.
    :param root_required: the traits that the root provider must have, even if the root
        provider serves none of the groups.
    :param root_forbidden: the traits that the root provider must not have.
    :param absent: the resource classes of which the host must not have an inventory. Placement has
        no such parameter: its candidates of other hosts are left out of the answer.
    """

    groups: tuple[RequestGroup, ...]
    group_policy: str | None = None
    same_subtree: tuple[tuple[str, ...], ...] = ()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    absent: frozenset[str] = frozenset()

    @property
    def microversion(self) -> tuple[int, int]:
        """The oldest microversion of Placement that can answer the query."""
        return (1, 39) if any(group.any_of for group in self.groups) else (1, 36)

    @property
    def in_subtrees(self) -> frozenset[str]:
        """The suffixes of all same_subtree parameters."""
        return frozenset(chain.from_iterable(self.same_subtree))

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
        """Return the query string, without the ``?``."""
        return "&".join([f"{key}={value}" for key, value in self.parameters()])

    def resources(self) -> dict[str, int]:
        """Return the sum of each resource class over all groups."""
        total = Counter[str]()
        for group in self.groups:
            total.update(group.resources)
        return dict(total)

    def required_traits(self) -> frozenset[str]:
        """Return the traits of all groups and of the root, including those of ``any_of``."""
        return self.root_required.union(
            *(traits for group in self.groups for traits in (group.required, *group.any_of))
        )

    def named_traits(self) -> frozenset[str]:
        """Return all traits of the query, required or forbidden."""
        forbidden = self.root_forbidden.union(*(group.forbidden for group in self.groups))
        return self.required_traits() | forbidden


def _traits(required: Iterable[str], forbidden: Iterable[str]) -> str:
    return ",".join([*sorted(required), *[f"!{name}" for name in sorted(forbidden)]])
