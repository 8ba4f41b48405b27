"""The gradient of fragmentation: how much usable room a server takes from servers to come.

After Weng et al., "Beware of Fragmentation", USENIX ATC 2023; see ``docs/reference/scores.rst``.
Pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.cost.amounts import AnsweredAmounts, Build
from cpu_tiers.weights.cost.demand import TypicalServers
from cpu_tiers.weights.cost.packing import Scale
from cpu_tiers.weights.cost.rarity import HostKinds
from cpu_tiers.weights.cost.shape import ServerShape
from cpu_tiers.weights.cost.usable import Host, HostKey, PlainServers, UsableAmounts, UsablePart
from cpu_tiers.weights.forest import Allocations
from cpu_tiers.weights.tree import Summary

MOST_TYPICAL = 128
"""The largest number of shapes that count as typical."""

TYPICAL_SHARE = 0.95
"""Shapes are typical, the most frequent first, until they are this share of all requests. Of the
others, those are typical that request as much as the rest of the share by themselves: a twentieth
of all that is requested. Else rare large servers would find no host."""


SIZE_POWER = 0.25
"""Large servers count more than their share of the requests: they are the first without a host."""

WEIGHT_POWER = 24
"""How much less a class counts of which a smaller share is in use: the class that ends first
counts, and hardly any other. Chosen on a recorded cluster, see
``docs/contributor/evidence.rst``."""


class Typical(NamedTuple):
    """A typical server.

    :param name: the resource class that counts: of all that the server requests, the class of
        which the largest share of the cloud is in use.
    :param weight: the weight of a unit of the class.
    """

    shape: ServerShape
    name: str
    weight: float


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
        plain: dict[frozenset[str], list[tuple[float, UsablePart]]] = {}
        for shape, name, weight in servers:
            parts = self._parts if shape.groups else plain.setdefault(shape.avoided, [])
            parts.append((weight, UsablePart(usable, shape, name)))
        self._plain = [PlainServers(avoided, parts) for avoided, parts in plain.items()]
        self._known: dict[Host, float] = {}

    def of(self, host: Host) -> float:
        """Return the usable room of a host, on average over the typical servers."""
        known = self._known.get(host)
        if known is None:
            providers = self.usable.providers(host)
            known = sum([weight * part.of(providers) for weight, part in self._parts])
            known += sum([servers.of(providers) for servers in self._plain])
            self._known[host] = known
        return known


class History:
    """What a scheduler remembers from request to request.

    :ivar demand: the requests that the scheduler has seen.
    :ivar room: the usable room of hosts for the servers that are typical now.
    """

    def __init__(self) -> None:
        """Start without any request."""
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


def typical(shares: Mapping[ServerShape, float], scale: Scale) -> Sequence[Typical]:
    """Return the typical servers.

    :param shares: the share of each shape in all requests, the most frequent shape first.
    """
    chosen: list[Typical] = []
    known = list(_sized(shares, scale))
    least = (1 - TYPICAL_SHARE) * sum(share * size for _, _, share, size in known)
    total = 0.0
    for shape, name, share, size in known:
        if total < TYPICAL_SHARE or share * size >= least:
            chosen.append(Typical(shape, name, share * size**SIZE_POWER))
        total += share
        if len(chosen) == MOST_TYPICAL:
            break
    sizes = sum(item.weight for item in chosen)
    return [
        item._replace(
            weight=item.weight
            / sizes
            * scale.weights[item.name] ** WEIGHT_POWER
            / scale.units[item.name]
        )
        for item in chosen
    ]


def _sized(
    shares: Mapping[ServerShape, float], scale: Scale
) -> Iterable[tuple[ServerShape, str, float, float]]:
    """Yield each shape with its class, its share of the requests, and its size.

    The size is the amount of the class in average hosts.
    """
    for shape, share in shares.items():
        amounts = shape.amounts()
        names = [name for name in sorted(amounts) if name in scale.units]
        if names:
            name = max(names, key=scale.used.__getitem__)
            yield shape, name, share, amounts[name] / scale.units[name]


class GradientStates:
    """The states of the providers of a request's hosts, as numbers.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param amounts: the amounts of the same answer.
    :ivar kinds: of each host, the traits that request groups ask for; empty if no request does.
    """

    def __init__(
        self, summaries: Mapping[str, Summary], amounts: AnsweredAmounts, room: UsableRoom
    ) -> None:
        self.kinds: dict[str, frozenset[str]] = {}
        self._usable = room.usable
        self._positions: dict[str, Mapping[str, int]] = {}
        self._hosts: dict[str, Host] = {}
        deciding, traits = room.traits, list[frozenset[str]]()
        for alike in amounts.alike:
            known = self._usable.hosts(alike.build)
            for root, host in alike.hosts.items():
                if deciding:
                    of_providers = [summaries[uuid]["traits"] for uuid in host.positions]
                    traits = list(map(deciding.intersection, of_providers))
                    if room.wanted:
                        self.kinds[root] = room.wanted & frozenset[str]().union(*traits)
                key: HostKey = (*traits, *host.free)
                state = known.get(key)
                if state is None:
                    state = known[key] = self._number(alike.build, host.free, traits)
                self._hosts[root], self._positions[root] = state, host.positions

    def _number(self, build: Build, free: Iterable[int], traits: Sequence[frozenset[str]]) -> Host:
        """Return the state of a host that is seen for the first time."""
        items, amounts, numbers = iter(build), iter(free), list[int]()
        for size in items:
            names = tuple(islice(items, int(size)))
            of = traits[len(numbers)] if traits else frozenset[str]()
            state = (*names, *islice(amounts, len(names)))
            numbers.append(self._usable.number(of, state))
        return tuple(numbers)

    def of(self, root: str) -> Host:
        """Return the state of a host."""
        return self._hosts[root]

    def after(self, root: str, candidates: Iterable[Allocations]) -> list[Host]:
        """Return the state of a host after the claim of each candidate."""
        return self._usable.outcomes(self._hosts[root], self._positions[root], candidates)

    def claim(self, root: str, allocations: Allocations) -> None:
        """Change the state of a host."""
        (self._hosts[root],) = self.after(root, [allocations])


class Gradient:
    """The losses of the hosts of a request, under the scoring ``fragmentation``.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param amounts: the amounts of the same answer.
    :param groups: the request groups of the server.
    :ivar kinds: the kinds of the hosts.
    """

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        amounts: AnsweredAmounts,
        groups: Iterable[RequestGroup],
        scale: Scale,
        history: History,
    ) -> None:
        self._shape = ServerShape.of(groups)
        self._history = history
        self._room = history.note(self._shape, scale)
        self._states = GradientStates(summaries, amounts, self._room)
        self.kinds = HostKinds(self._states.kinds)
        self._outcomes: dict[str, list[Host]] = {}
        self._losses: dict[str, list[float]] = {}
        self._least: dict[str, float] = {}

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
        self._states = GradientStates(answered, AnsweredAmounts(answered), self._room)
        self.kinds = HostKinds(self._states.kinds)
        self._outcomes.clear()
        return True

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:
        """Note the candidates of a host."""
        self._outcomes[root] = self._states.after(root, candidates)
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
        """Subtract the allocations of a server; the host needs new candidates then."""
        self._states.claim(root, allocations)
        self._outcomes.pop(root, None)
        self._least.pop(root, None)

    def _work_out(self, root: str) -> float:
        """Work out the losses of a host's candidates, and return the least."""
        room = self._room.of
        before = room(self._states.of(root))
        losses = [before - room(after) for after in self._outcomes.get(root, ())]
        self._losses[root] = losses
        least = self._least[root] = min(losses, default=0.0)
        return least
