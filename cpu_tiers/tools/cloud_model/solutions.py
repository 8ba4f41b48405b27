"""The allocation candidates of a host: providers for each request group, and all rules at once.

Units, traits and aggregates never change, so they are compared once for all hosts of a layout; the
free amounts are compared each time. Source: Placement 16, ``objects/research_context.py`` and
``objects/allocation_candidate.py``, and a comparison with a real Placement on random clouds.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.providers import (
    HostLayout,
    ProviderLayout,
    Solution,
    Stock,
    are_in,
)

Numbers = Collection[int]
"""Providers of a host by their numbers."""


class GroupChoice(NamedTuple):
    """A way to serve a request group.

    :param providers: the numbers of the providers, in ascending order.
    :param amounts: the number of each inventory, with the amount.
    """

    providers: tuple[int, ...]
    amounts: tuple[tuple[int, int], ...]


class SuffixedGroup:
    """A group with a suffix: a single provider serves all of it.

    :param within: the providers that are in the tree of the group's ``in_tree``.
    """

    def __init__(self, group: RequestGroup, layout: HostLayout, within: Numbers) -> None:
        self._choices: list[GroupChoice] = []
        if not (group.resources or group.required or group.any_of or group.member_of):
            return  # Placement has no provider for a group that only forbids traits
        # Placement ignores in_tree for a group without resources.
        for number in within if group.resources else range(len(layout.places)):
            amounts = tuple(
                (stock, amount)
                for name, amount in group.resources.items()
                if (stock := layout.stock(number, name, amount)) is not None
            )
            if len(amounts) == len(group.resources) and _suits(layout.places[number], group):
                self._choices.append(GroupChoice((number,), amounts))

    def is_possible(self) -> bool:
        """Tell whether a provider could serve the group if nothing was allocated."""
        return bool(self._choices)

    def choices(self, stocks: Sequence[Stock]) -> list[GroupChoice]:
        """Return the ways to serve the group from what is free now."""
        return [
            choice
            for choice in self._choices
            if all(stocks[stock].free >= amount for stock, amount in choice.amounts)
        ]


class UnsuffixedGroup:
    """The group without a suffix: the providers of the tree serve it together.

    :param within: the providers that are in the tree of the group's ``in_tree``.
    """

    def __init__(self, group: RequestGroup, layout: HostLayout, within: Numbers) -> None:
        self._group = group
        self._layout = layout
        self._options = [
            (amount, list(self._providers(name, amount, within)))
            for name, amount in group.resources.items()
        ]
        self._are_right: dict[frozenset[int], bool] = {}
        # Most hosts have a single provider of each class, so they have a single choice.
        self._has_one_choice = all(len(providers) == 1 for _, providers in self._options)
        self._all = self._joined(self._options) if self._has_one_choice else []

    def _providers(self, name: str, amount: int, within: Numbers) -> Iterator[tuple[int, int]]:
        """Yield the providers of a resource class, each with the number of its inventory."""
        places, group = self._layout.places, self._group
        # The aggregates of the root provider count for the whole tree.
        tree_is_member = are_in(places[0].aggregates, group.member_of)
        for number in within:
            place = places[number]
            is_member = (place.is_own and tree_is_member) or are_in(
                place.aggregates, group.member_of
            )
            if group.not_member_of:
                tree = places[0].aggregates if place.is_own else frozenset[str]()
                is_member &= group.not_member_of.isdisjoint(place.aggregates | tree)
            stock = self._layout.stock(number, name, amount)
            if stock is not None and is_member and group.forbidden.isdisjoint(place.traits):
                yield number, stock

    def is_possible(self) -> bool:
        """Tell whether the providers could serve the group if nothing was allocated."""
        if self._has_one_choice:
            return bool(self._all)
        return all(providers for _, providers in self._options)

    def choices(self, stocks: Sequence[Stock]) -> list[GroupChoice]:
        """Return the ways to serve the group from what is free now."""
        if not self._has_one_choice:
            return self._joined(
                (amount, [pair for pair in providers if stocks[pair[1]].free >= amount])
                for amount, providers in self._options
            )
        for choice in self._all:
            for stock, amount in choice.amounts:
                if stocks[stock].free < amount:
                    return []
        return self._all

    def _joined(self, options: Iterable[tuple[int, list[tuple[int, int]]]]) -> list[GroupChoice]:
        """Return each choice of a provider for each class, if the providers have the traits."""
        parts = [
            [(number, (stock, amount)) for number, stock in providers]
            for amount, providers in options
        ]
        return [
            GroupChoice(tuple(sorted(numbers)), tuple(part for _, part in pairs))
            for pairs in itertools.product(*parts)
            for numbers in [frozenset(number for number, _ in pairs)]
            if self._has_traits(numbers)
        ]

    def _has_traits(self, providers: frozenset[int]) -> bool:
        """Tell whether providers have the required traits together."""
        if not (self._group.required or self._group.any_of):
            return True
        if providers not in self._are_right:
            traits = (self._layout.places[number].traits for number in providers)
            self._are_right[providers] = _has(frozenset().union(*traits), self._group)
        return self._are_right[providers]


def _suits(place: ProviderLayout, group: RequestGroup) -> bool:
    return (
        _has(place.traits, group)
        and group.forbidden.isdisjoint(place.traits)
        and are_in(place.aggregates, group.member_of)
        and group.not_member_of.isdisjoint(place.aggregates)
    )


def _has(traits: frozenset[str], group: RequestGroup) -> bool:
    return group.required <= traits and not any(map(traits.isdisjoint, group.any_of))


class Solver:
    """Finds the candidates of a query on the hosts of a layout.

    :param within: for each group of the query, the providers that its ``in_tree`` allows.
    :param each_order: whether groups that request the same swap their providers in further
        candidates, as in Placement; they leave the same host, and eight equal groups have
        40,320 orders.
    :param nodes_apart: whether each node of the guest gets a NUMA node of its own. Placement
        does not demand it, but no guest can be placed otherwise.
    """

    def __init__(
        self,
        query: CandidateQuery,
        layout: HostLayout,
        within: Sequence[Numbers],
        *,
        each_order: bool = True,
        nodes_apart: bool = False,
    ) -> None:
        self._query = query
        self._apart = frozenset(
            number
            for number, group in enumerate(query.groups)
            if nodes_apart and group.suffix.startswith("_PROC")
        )
        suffixes = [group.suffix for group in query.groups]
        # By the last group of a same_subtree, the numbers of all groups of it.
        self._subtrees: dict[int, list[tuple[int, ...]]] = {}
        for together in query.same_subtree:
            numbers = tuple(n for n, suffix in enumerate(suffixes) if suffix in together)
            if numbers:
                self._subtrees.setdefault(numbers[-1], []).append(numbers)
        self._layout = layout
        self._groups: list[SuffixedGroup | UnsuffixedGroup] = [
            SuffixedGroup(group, layout, numbers)
            if group.suffix
            else UnsuffixedGroup(group, layout, numbers)
            for group, numbers in zip(query.groups, within, strict=True)
        ]
        self._twins = [
            None if each_order else _twin(query, number) for number in range(len(query.groups))
        ]
        self._last: tuple[list[GroupChoice], tuple[Solution, ...]] = [], ()
        root = layout.places[0].traits
        self.is_possible = (
            query.root_required <= root
            and query.root_forbidden.isdisjoint(root)
            and query.absent.isdisjoint(layout.own_classes if query.absent else ())
            and all(group.is_possible() for group in self._groups)
        )
        """Whether the hosts could serve the query if nothing was allocated."""

    def solutions(self, stocks: Sequence[Stock]) -> tuple[Solution, ...]:
        """Return the candidates on a host.

        :param stocks: the inventories of the host, in the order of its host.
        """
        if len(self._groups) == 1:
            return self._alone(self._groups[0].choices(stocks))
        return tuple(self.each(stocks))

    def each(self, stocks: Sequence[Stock]) -> Iterator[Solution]:
        """Yield the candidates on a host, for a caller that needs only the first candidates."""
        options = []
        for group in self._groups:
            choices = group.choices(stocks)
            if not choices:
                return
            options.append(choices)
        yield from self._joined(options, (), {}, stocks)

    def _alone(self, choices: list[GroupChoice]) -> tuple[Solution, ...]:
        """Return the candidates of a query that has a single group."""
        if choices is not self._last[0]:  # most hosts of a layout have the same list
            solutions = tuple(Solution(choice.amounts, (choice.providers,)) for choice in choices)
            self._last = choices, solutions
        return self._last[1]

    def _joined(
        self,
        options: Sequence[Sequence[GroupChoice]],
        chosen: tuple[tuple[int, ...], ...],
        amounts: dict[int, int],
        stocks: Sequence[Stock],
    ) -> Iterator[Solution]:
        """Yield the candidates that continue the providers of the first groups."""
        number = len(chosen)
        if number == len(options):
            yield Solution(tuple(amounts.items()), chosen)
            return
        for choice in options[number]:
            if not self._may_follow(number, choice, chosen):
                continue
            total = dict(amounts)
            for stock, amount in choice.amounts:
                total[stock] = total.get(stock, 0) + amount
            extended = (*chosen, choice.providers)
            if self._fit(total, choice, stocks) and self._are_in_subtrees(number, extended):
                yield from self._joined(options, extended, total, stocks)

    def _may_follow(
        self, number: int, choice: GroupChoice, chosen: Sequence[tuple[int, ...]]
    ) -> bool:
        """Tell whether the group policy, and the order of equal groups, allow a choice."""
        twin = self._twins[number]
        if twin is not None and choice.providers < chosen[twin]:
            return False
        if number in self._apart and any(
            choice.providers == chosen[other] for other in self._apart if other < number
        ):
            return False
        if self._query.group_policy != "isolate" or not self._query.groups[number].suffix:
            return True
        earlier = zip(self._query.groups, chosen, strict=False)
        return all(not group.suffix or choice.providers != taken for group, taken in earlier)

    def _fit(self, total: dict[int, int], choice: GroupChoice, stocks: Sequence[Stock]) -> bool:
        """Tell whether the inventories of a choice have room for all groups.

        Placement compares the sum with the capacity and the largest unit only.
        """
        return all(
            total[stock] <= stocks[stock].free
            and total[stock] <= self._layout.units[stock].max_unit
            for stock, _ in choice.amounts
        )

    def _are_in_subtrees(self, number: int, chosen: Sequence[tuple[int, ...]]) -> bool:
        """Tell whether the providers obey each ``same_subtree`` that ends with a group."""
        for groups in self._subtrees.get(number, ()):
            numbers = {provider for group in groups for provider in chosen[group]}
            above = [self._layout.above[provider] for provider in numbers]
            if numbers.isdisjoint(frozenset.intersection(*above)):
                return False
        return True


def _twin(query: CandidateQuery, number: int) -> int | None:
    """Return the last earlier group with the same request; ``None`` without such a group.

    Of the groups of a ``same_subtree``, only the first has a twin: the first group of an earlier
    ``same_subtree`` with the same requests, as that of another node of the guest.
    """
    wanted = _requests(query, number)
    twins = [earlier for earlier in range(number) if _requests(query, earlier) == wanted]
    return twins[-1] if twins and wanted else None


def _requests(query: CandidateQuery, number: int) -> list[RequestGroup]:
    """Return the requests that begin with a group; none if nothing can take their place."""
    group = query.groups[number]
    tree = next((tree for tree in query.same_subtree if group.suffix in tree), (group.suffix,))
    groups = [each for each in query.groups if each.suffix in tree]
    times = Counter(itertools.chain.from_iterable(query.same_subtree))
    if not group.suffix or groups[0] != group or max(times[name] for name in tree) > 1:
        return []
    return [each._replace(suffix="", requester_id=None) for each in groups]
