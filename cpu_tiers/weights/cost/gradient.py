"""The gradient of fragmentation: how much usable room a server takes from servers to come.

After Weng et al., "Beware of Fragmentation", USENIX ATC 2023; see ``docs/reference/scores.rst``.
Pure.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from math import sqrt

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.amounts import AnsweredAmounts, Build
from cpu_tiers.weights.cost.typical_servers import ServerShape, Typical, TypicalServers, typical
from cpu_tiers.weights.cost.usable import (
    Claim,
    Host,
    HostKey,
    Offer,
    PlainServers,
    UsableAmounts,
    UsablePart,
)
from cpu_tiers.weights.forest import Allocations, Summary
from cpu_tiers.weights.scale import Scale

RARITY_WEIGHT = 0.03
"""The weight of the rarity of a host. Chosen on a recorded cluster, see
``docs/contributor/evidence.rst``."""


class UsableRoom:
    """The usable room of hosts, for the servers that are typical at a moment.

    The object is not changed when other servers become typical: a request keeps its object.

    :param traits: the traits that decide which providers have room for a server.
    :param wanted: those of the traits that request groups ask for.
    """

    def __init__(
        self,
        usable: UsableAmounts,
        traits: frozenset[str],
        servers: Sequence[Typical],
        wanted: frozenset[str] = frozenset(),
    ) -> None:
        self.usable = usable
        self.traits = traits
        self.wanted = wanted
        self._parts: list[tuple[float, UsablePart]] = []
        self._large: list[tuple[float, UsablePart]] = []
        plain: dict[frozenset[str], list[tuple[float, UsablePart]]] = {}
        for shape, weight, factors, price in servers:
            part = UsablePart(usable, shape, factors)
            parts = self._parts if shape.groups else plain.setdefault(shape.avoided, [])
            parts.append((weight, part))
            if price:
                self._large.append((price, part))
        self._plain = [PlainServers(avoided, parts) for avoided, parts in plain.items()]
        self._known: dict[Host, float] = {}
        self._losses: dict[Host, dict[Offer, list[float]]] = {}

    def losses(self, host: Host, offer: Offer) -> list[float]:
        """Return the usable room that a host loses by the claim of each candidate."""
        known = self._losses.get(host)
        if known is None:
            known = self._losses[host] = {}
        losses = known.get(offer)
        if losses is None:
            before, outcomes = self.amount(host), self.usable.outcomes(host, offer)
            losses = known[offer] = [before - self.amount(after) for after in outcomes]
        return losses

    def amount(self, host: Host) -> float:
        """Return the usable room of a host, on average over the typical servers.

        A place for a large server counts its price beside its part of the average.
        """
        known = self._known.get(host)
        if known is None:
            providers = self.usable.providers(host)
            known = sum([weight * part.amount(providers) for weight, part in self._parts])
            known += sum([servers.amount(providers) for servers in self._plain])
            known += sum([price for price, part in self._large if part.amount(providers)])
            self._known[host] = known
        return known


class History:
    """The memory of a scheduler from request to request.

    :ivar demand: the requests that the scheduler has seen.
    :ivar room: the usable room of hosts for the servers that are typical now.
    """

    def __init__(self) -> None:
        self.demand = TypicalServers()
        self.room = UsableRoom(UsableAmounts(), frozenset(), ())
        self._requests = self._renewal = 0

    def note(self, shape: ServerShape, scale: Scale) -> UsableRoom:
        """Count a request, and at times work out anew which servers are typical.

        The typical servers are worked out whenever the requests have grown by a third, so often
        at the beginning, and at the latest after 1,000 requests.
        """
        self.demand.add(shape)
        self._requests += 1
        if self._requests >= self._renewal or not shape.traits <= self.room.traits:
            self._renewal = self._requests + 1 + min(1_000, self._requests // 3)
            self._renew(scale)
        return self.room

    def _renew(self, scale: Scale) -> None:
        shares = self.demand.shares()
        traits = frozenset[str]().union(*(shape.traits for shape in shares))
        wanted = frozenset[str]().union(*(shape.wanted for shape in shares))
        usable = self.room.usable
        if (traits, wanted) != (self.room.traits, self.room.wanted) or usable.is_full:
            # The states of providers have the traits that decide, and no others.
            usable = UsableAmounts()
        self.room = UsableRoom(usable, traits, typical(shares, scale), wanted)


class HostKinds:
    """The kinds of the hosts of a request.

    :param kinds: the kind of each host by the uuid of the root provider; empty if no request
        names a trait.
    """

    def __init__(self, kinds: Mapping[str, frozenset[str]]) -> None:
        self._kinds = kinds

    def rarities(self, roots: Collection[str]) -> list[float]:
        """Return the weighted rarity of each host among these hosts; empty if all are alike."""
        counts = Counter(self._kinds[root] for root in roots) if self._kinds else {}
        if len(counts) < 2:
            return []
        rarity_by_kind = {
            kind: RARITY_WEIGHT * (sqrt(len(roots) / count) - 1) for kind, count in counts.items()
        }
        return [rarity_by_kind[self._kinds[root]] for root in roots]

    def rarity(self, root: str) -> float:
        """Return the weighted rarity of a host among all hosts."""
        return self._among_all.get(root, 0.0)

    @cached_property
    def _among_all(self) -> Mapping[str, float]:
        return dict(zip(self._kinds, self.rarities(self._kinds), strict=False))


class Gradient:
    """The losses of the hosts of a request, under the scoring ``fragmentation``.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param amounts: the amounts of the same answer.
    :param groups: the request groups of the server.
    :ivar kinds: the kinds of the hosts.
    """

    kinds: HostKinds

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        amounts: AnsweredAmounts,
        groups: Iterable[RequestGroup],
        scale: Scale,
        history: History,
    ) -> None:
        self._shape = ServerShape.from_groups(groups)
        self._history = history
        self._room = history.note(self._shape, scale)
        # By the root provider of the host; the states of its providers are numbers.
        self._positions: dict[str, Mapping[str, int]] = {}
        self._hosts: dict[str, Host] = {}
        self._offers: dict[str, Offer] = {}
        self._losses: dict[str, Sequence[float]] = {}
        self._least: dict[str, float] = {}
        self._read(summaries, amounts)

    def _read(self, summaries: Mapping[str, Summary], amounts: AnsweredAmounts) -> None:
        """Read the states and the kinds of all hosts."""
        room, kinds = self._room, dict[str, frozenset[str]]()
        traits = list[frozenset[str]]()
        for equal_hosts in amounts.alike:
            known = room.usable.hosts(equal_hosts.build)
            for root, host in equal_hosts.hosts.items():
                if room.traits:
                    provider_traits = [summaries[uuid]["traits"] for uuid in host.positions]
                    traits = list(map(room.traits.intersection, provider_traits))
                    if room.wanted:
                        kinds[root] = room.wanted & frozenset[str]().union(*traits)
                key: HostKey = (*traits, *host.free)
                state = known.get(key)
                if state is None:
                    state = known[key] = self._number(equal_hosts.build, host.free, traits)
                self._hosts[root], self._positions[root] = state, host.positions
        self.kinds = HostKinds(kinds)
        self._amounts: list[list[Mapping[str, int]]] = []
        self._claims: tuple[tuple[Claim, ...], ...] = ()

    def _number(self, build: Build, free: Iterable[int], traits: Sequence[frozenset[str]]) -> Host:
        """Return the state of a host that is seen for the first time."""
        items, amounts, numbers = iter(build), iter(free), list[int]()
        for size in items:
            names = tuple(islice(items, int(size)))
            provider_traits = traits[len(numbers)] if traits else frozenset[str]()
            state = (*names, *islice(amounts, len(names)))
            numbers.append(self._room.usable.number(provider_traits, state))
        return tuple(numbers)

    def renew(self, scale: Scale, summaries: Callable[[], Mapping[str, Summary]]) -> bool:
        """Begin another request for an equal server.

        :param summaries: returns the summaries of all hosts as they are now.
        :returns: whether the candidates of all hosts have to be offered again.
        """
        before, self._room = self._room, self._history.note(self._shape, scale)
        if self._room is not before:
            self._least.clear()
        if self._room.usable is before.usable:
            return False
        answered = summaries()
        self._read(answered, AnsweredAmounts(answered))
        self._offers.clear()
        return True

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:
        """Note the candidates of a host."""
        amounts = [[*allocations.values()] for allocations in candidates]
        if amounts != self._amounts:  # mostly those of the host before
            claim = self._room.usable.claim
            self._amounts = amounts
            self._claims = tuple(
                [tuple(map(claim, candidate_amounts)) for candidate_amounts in amounts]
            )
        uuids = chain.from_iterable(candidates)
        self._offers[root] = self._claims, tuple(map(self._positions[root].get, uuids))
        self._least.pop(root, None)

    def losses(self, roots: Iterable[str]) -> list[float]:
        """Return the loss of the best candidate of each host; 0 if no candidates were offered."""
        known, work_out = self._least, self._work_out
        return [known[root] if root in known else work_out(root) for root in roots]

    def best(self, root: str) -> int:
        """Return the number of the best candidate that was offered; of equal ones the first."""
        (least,) = self.losses([root])
        return self._losses[root].index(least)

    def claim(self, root: str, allocations: Allocations) -> None:
        """Subtract the allocations of a server; afterwards the host needs new candidates."""
        usable, positions, states = self._room.usable, self._positions[root], [*self._hosts[root]]
        for uuid, amounts in allocations.items():
            position = positions.get(uuid)
            if position is not None:
                states[position] = usable.after(states[position], usable.claim(amounts))
        self._hosts[root] = tuple(states)
        self._offers.pop(root, None)
        self._least.pop(root, None)

    def _work_out(self, root: str) -> float:
        """Work out the losses of a host's candidates, and return the least."""
        offer = self._offers.get(root)
        losses = self._room.losses(self._hosts[root], offer) if offer else ()
        self._losses[root] = losses
        least = self._least[root] = min(losses, default=0.0)
        return least
