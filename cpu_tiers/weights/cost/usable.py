"""How much of the free amounts of a host a server of a certain shape could use.

States of hosts are numbers, so only changed hosts cost time in a request. Pure; an object belongs
to one scheduler and may be shared by its threads.
"""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.weights.cost.amounts import Build
from cpu_tiers.weights.cost.typical_servers import GroupShape, ServerShape

Host = tuple[int, ...]
"""The numbers of the states of all providers of a host."""

HostKey = tuple[frozenset[str] | int, ...]
"""The traits of each provider of a host, unless no traits decide, and the free amounts."""

FreeAmounts = tuple[str | int, ...]
"""The resource classes of a provider, then the free amount of each: a key that is hashed fast."""

State = tuple[frozenset[str], Mapping[str, int]]
"""The traits and the free amounts of a provider."""

MOST_STATES = 500_000
"""The number of remembered states and claims with which an object is full."""


class UsableAmounts:
    """Remembers providers, and what servers could use of hosts."""

    def __init__(self) -> None:
        self._numbers: dict[frozenset[str], dict[FreeAmounts, int]] = {}
        self._unused = itertools.count()  # no two threads get the same number
        self._states: dict[int, State] = {}
        self._claims: dict[FreeAmounts, Claim] = {}
        self._hosts: dict[Build, dict[HostKey, Host]] = {}
        self._times: dict[GroupShape, dict[int, int]] = {}

    def hosts(self, build: Build) -> dict[HostKey, Host]:
        """Return the states of all known hosts of a build."""
        return self._hosts.setdefault(build, {})

    def number(self, traits: frozenset[str], free: FreeAmounts) -> int:
        """Return the number of a state of a provider."""
        numbers = self._numbers.setdefault(traits, {})
        number = numbers.get(free)
        if number is None:
            number = next(self._unused)
            half = len(free) // 2
            names, amounts = map(str, free[:half]), map(int, free[half:])
            self._states[number] = traits, dict(zip(names, amounts, strict=True))
            numbers[free] = number
        return number

    def claim(self, amounts: Mapping[str, int]) -> "Claim":
        """Return the claim of these amounts of a provider."""
        key: FreeAmounts = (*amounts, *amounts.values())
        claim = self._claims.get(key)
        return claim or self._claims.setdefault(key, Claim(amounts))

    def after(self, number: int, claim: "Claim") -> int:
        """Return the number of the state of a provider after a claim."""
        after = claim.after.get(number)
        if after is None:
            traits, free = self._states[number]
            left = [amount - claim.amounts.get(name, 0) for name, amount in free.items()]
            after = claim.after[number] = self.number(traits, (*free, *left))
        return after

    def outcomes(self, host: Host, offer: "Offer") -> list[Host]:
        """Return the state of a host after the claim of each candidate."""
        candidates, positions = offer
        outcomes, places = [], iter(positions)
        for claims in candidates:
            states = [*host]
            for claim in claims:
                position = next(places)
                if position is not None:
                    states[position] = self.after(states[position], claim)
            outcomes.append(tuple(states))
        return outcomes

    def providers(self, host: Host) -> "Providers":
        """Return the providers of a host."""
        return Providers(host, [self._states[number] for number in host])

    def times(self, group: GroupShape, number: int) -> int:
        """Return how many times a provider could serve a group."""
        known = self._times.setdefault(group, {})
        times = known.get(number)
        if times is None:
            traits, free = self._states[number]
            times = known[number] = _times(group, free) if group.allows(traits) else 0
        return times

    @property
    def is_full(self) -> bool:
        """Whether more is remembered than a service should keep in memory."""
        hosts = sum(map(len, self._hosts.values()))
        return len(self._states) + len(self._claims) + hosts > MOST_STATES


class Claim:
    """A claim of a provider. Equal claims are the same object.

    :ivar after: by the number of a state of a provider, the number of the state after the claim.
    """

    __slots__ = ("after", "amounts")

    def __init__(self, amounts: Mapping[str, int]) -> None:
        self.amounts = dict(amounts)
        self.after: dict[int, int] = {}


Offer = tuple[tuple[tuple[Claim, ...], ...], tuple[int | None, ...]]
"""The claims of each candidate of a host, and then the position of the provider of each claim.

``None`` is a provider of another host."""


class Free(NamedTuple):
    """Free amounts of providers, by resource class.

    :param amounts: the amount of each provider that has the class.
    :param most: the largest of the amounts.
    """

    amounts: Mapping[str, Sequence[int]]
    most: Mapping[str, int]


class Providers:
    """The providers of a host, read once for the servers of all shapes.

    :ivar host: the numbers of the states.
    :ivar states: the states.
    """

    def __init__(self, host: Host, states: Sequence[State]) -> None:
        self.host, self.states = host, states
        self._without: dict[frozenset[str], Free] = {}

    def without(self, avoided: frozenset[str]) -> Free:
        """Return the free amounts of the providers without avoided traits."""
        free = self._without.get(avoided)
        if free is None:
            amounts: dict[str, list[int]] = {}
            for traits, provider_states in self.states:
                if avoided.isdisjoint(traits):
                    for name, amount in provider_states.items():
                        amounts.setdefault(name, []).append(amount)
            most = {name: max(class_amounts) for name, class_amounts in amounts.items()}
            free = self._without[avoided] = Free(amounts, most)
        return free


class UsablePart:
    """How much of hosts servers of a shape could use, in average hosts.

    The part is 0 if a host has no room for one such server. Else the class decides that such
    servers would use up first: the smallest product of a factor and the usable amount of the
    class, which is the sum of what is free on each provider that could serve one of the groups
    that request the class.

    :param factors: by resource class, the average hosts that a usable unit is worth.
    """

    def __init__(
        self, usable: UsableAmounts, shape: ServerShape, factors: Mapping[str, float]
    ) -> None:
        self._times = usable.times
        self.shape, self.factors = shape, factors
        anywhere = dict(shape.anywhere)
        self._whole: list[tuple[str, float, int]] = []
        self._grouped: list[tuple[str, float, float, list[GroupShape]]] = []
        for name, factor in factors.items():
            groups = [group for group, _ in shape.groups if name in dict(group.amounts)]
            if groups:
                self._grouped.append((name, factor, anywhere.get(name, math.inf), groups))
            else:
                self._whole.append((name, factor, anywhere[name]))

    def amount(self, providers: Providers) -> float:
        """Return the amount of a host."""
        # This runs for every typical server of each new state of a host.
        for group, count in self.shape.groups:
            if sum([self._times(group, number) for number in providers.host]) < count:
                return 0.0
        amounts, most = providers.without(self.shape.avoided)
        for wanted, amount in self.shape.anywhere:
            if most.get(wanted, 0) < amount:
                return 0.0
        parts = [
            factor * sum([amount for amount in amounts[name] if amount >= least])
            for name, factor, least in self._whole
        ]
        for name, factor, smallest, groups in self._grouped:
            parts.append(factor * sum(self._serving(providers, name, smallest, groups)))
        return min(parts)

    def _serving(
        self, providers: Providers, name: str, least: float, groups: Iterable[GroupShape]
    ) -> Iterable[int]:
        """Yield the free amounts of the providers that could serve one of the groups."""
        for number, (traits, amounts) in zip(providers.host, providers.states, strict=True):
            free = amounts.get(name, 0)
            in_whole = free >= least and self.shape.avoided.isdisjoint(traits)
            if free > 0 and (in_whole or any(self._times(group, number) for group in groups)):
                yield free


class PlainServers:
    """How much servers without suffixed groups could use; all servers avoid the same traits.

    Where each of these servers has room, the amounts are added up once for all servers, and only
    servers that request their classes in other proportions are worked out apart.

    :param parts: the part of each server, with its weight.
    """

    def __init__(self, avoided: frozenset[str], parts: Sequence[tuple[float, UsablePart]]) -> None:
        self._avoided, self._parts = avoided, parts
        self._largest: dict[str, int] = {}
        weights: dict[tuple[tuple[str, float], ...], float] = {}
        for weight, part in parts:
            # Equal proportions differ in the last digits.
            factors = tuple((name, float(f"{f:.9g}")) for name, f in part.factors.items())
            weights[factors] = weights.get(factors, 0.0) + weight
            for name, amount in part.shape.anywhere:
                self._largest[name] = max(1, amount, self._largest.get(name, 0))
        self._proportions = list(weights.items())

    def amount(self, providers: Providers) -> float:
        """Return the weighted sum of the amounts of a host."""
        amounts, most = providers.without(self._avoided)
        for name, amount in self._largest.items():
            if most.get(name, 0) < amount or min(amounts[name]) < amount:
                return self._of_each(providers)
        totals = {name: sum(amounts[name]) for name in self._largest}
        return sum(
            [
                weight * min([factor * totals[name] for name, factor in factors])
                for factors, weight in self._proportions
            ]
        )

    def _of_each(self, providers: Providers) -> float:
        return sum([weight * part.amount(providers) for weight, part in self._parts])


def _times(group: GroupShape, free: Mapping[str, int]) -> int:
    return max(0, min(free.get(name, 0) // amount for name, amount in group.amounts))
