"""Which providers of a reach can serve a request group.

Units, traits and aggregates never change, so they are compared once for all hosts of a shape; the
free amounts are compared each time. Source: Placement 16, ``objects/research_context.py`` and
``objects/allocation_candidate.py``, and a comparison with a real Placement on random clouds.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.tools.simulation.provider import Stock, are_in
from cpu_tiers.tools.simulation.reach import Place, Shape

Numbers = Collection[int]
"""Providers of a reach by their numbers."""


class GroupChoice(NamedTuple):
    """A way to serve a request group.

    :param providers: the numbers of the providers, in ascending order.
    :param claims: the number of each inventory, with the amount.
    """

    providers: tuple[int, ...]
    claims: tuple[tuple[int, int], ...]


class Group(Protocol):
    """A request group, resolved for the hosts of a shape."""

    def is_possible(self) -> bool:
        """Tell whether the providers could serve the group if nothing was allocated."""

    def choices(self, stocks: Sequence[Stock]) -> list[GroupChoice]:
        """Return the ways to serve the group from what is free now."""


class SameProvider:
    """A group with a suffix: a single provider serves all of it.

    :param within: the providers that are in the tree of the group's ``in_tree``.
    """

    def __init__(self, group: RequestGroup, shape: Shape, within: Numbers) -> None:
        self._choices: list[GroupChoice] = []
        if not (group.resources or group.required or group.any_of or group.member_of):
            return  # Placement has no provider for a group that only forbids traits
        # Placement ignores in_tree for a group without resources.
        for number in within if group.resources else range(len(shape.places)):
            claims = tuple(
                (stock, amount)
                for name, amount in group.resources.items()
                if (stock := shape.stock(number, name, amount)) is not None
            )
            if len(claims) == len(group.resources) and _suits(shape.places[number], group):
                self._choices.append(GroupChoice((number,), claims))

    def is_possible(self) -> bool:
        """Tell whether a provider could serve the group if nothing was allocated."""
        return bool(self._choices)

    def choices(self, stocks: Sequence[Stock]) -> list[GroupChoice]:
        """Return the ways to serve the group from what is free now."""
        return [
            choice
            for choice in self._choices
            if all(stocks[stock].free >= amount for stock, amount in choice.claims)
        ]


class WholeTree:
    """The group without a suffix: the providers of the tree serve it together.

    :param within: the providers that are in the tree of the group's ``in_tree``.
    """

    def __init__(self, group: RequestGroup, shape: Shape, within: Numbers) -> None:
        self._group = group
        self._shape = shape
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
        places, group = self._shape.places, self._group
        # The aggregates of the root provider count for the whole tree.
        tree_is_member = are_in(places[0].aggregates, group.member_of)
        for number in within:
            place = places[number]
            is_member = (place.is_own and tree_is_member) or are_in(
                place.aggregates, group.member_of
            )
            stock = self._shape.stock(number, name, amount)
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
            for stock, amount in choice.claims:
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
            GroupChoice(tuple(sorted(numbers)), tuple(claim for _, claim in pairs))
            for pairs in itertools.product(*parts)
            for numbers in [frozenset(number for number, _ in pairs)]
            if self._has_traits(numbers)
        ]

    def _has_traits(self, providers: frozenset[int]) -> bool:
        """Tell whether providers have the required traits together."""
        if not (self._group.required or self._group.any_of):
            return True
        if providers not in self._are_right:
            traits = (self._shape.places[number].traits for number in providers)
            self._are_right[providers] = _has(frozenset().union(*traits), self._group)
        return self._are_right[providers]


def _suits(place: Place, group: RequestGroup) -> bool:
    return (
        _has(place.traits, group)
        and group.forbidden.isdisjoint(place.traits)
        and are_in(place.aggregates, group.member_of)
    )


def _has(traits: frozenset[str], group: RequestGroup) -> bool:
    return group.required <= traits and not any(map(traits.isdisjoint, group.any_of))
