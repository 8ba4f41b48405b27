"""The gradient of fragmentation: how much usable room a server takes from servers to come.

After Weng et al., "Beware of Fragmentation", USENIX ATC 2023; see ``docs/weigher.rst``. Pure.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights.demand import TypicalServers
from cpu_tiers.weights.packing import Scale
from cpu_tiers.weights.rarity import HostKinds
from cpu_tiers.weights.shape import ServerShape
from cpu_tiers.weights.tree import Summary
from cpu_tiers.weights.usable import Host, UsableAmounts

Allocations = Mapping[str, Mapping[str, int]]
"""The amounts of a candidate by provider uuid and resource class."""

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
counts, and hardly any other. Chosen on a recorded cluster, see ``docs/evidence.rst``."""


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
        self._typical = servers
        self._known: dict[Host, float] = {}

    def of(self, host: Host) -> float:
        """Return the usable room of a host, on average over the typical servers."""
        known = self._known.get(host)
        if known is None:
            of = self.usable.of
            known = sum([item.weight * of(item.shape, item.name, host) for item in self._typical])
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
    :ivar free: the free amounts of each host, by the uuid of the root provider.
    """

    def __init__(self, summaries: Mapping[str, Summary], room: UsableRoom) -> None:
        self._after = room.usable.after
        self._hosts: defaultdict[str, dict[str, int]] = defaultdict(dict)
        self.free: defaultdict[str, dict[str, int]] = defaultdict(dict)
        # Local names: this loop runs for every provider of every candidate host.
        host = free = dict[str, int]()
        before, deciding = None, room.traits
        number_of, numbers = room.usable.number, room.usable.numbers(frozenset())
        for uuid, summary in summaries.items():
            root = summary["root_provider_uuid"]
            if root != before:  # the providers of a tree mostly stand together, but need not
                before, host, free = root, self._hosts[root], self.free[root]
            of_class = summary["resources"]
            state = [*of_class]
            for name, of in of_class.items():
                amount = of["capacity"] - of["used"]
                state.append(amount)
                free[name] = free.get(name, 0) + amount
            key = tuple(state)
            if deciding and (traits := deciding.intersection(summary["traits"])):
                host[uuid] = number_of(traits, key)
            elif (number := numbers.get(key)) is None:
                host[uuid] = number_of(frozenset(), key)
            else:
                host[uuid] = number

    def of(self, root: str) -> Host:
        """Return the state of a host."""
        return tuple(self._hosts[root].values())

    def after(self, root: str, candidates: Iterable[Allocations]) -> list[Host]:
        """Return the state of a host after the claim of each candidate."""
        host, after = self._hosts[root], self._after
        return [tuple(after(host, allocations).values()) for allocations in candidates]

    def claim(self, root: str, allocations: Allocations) -> None:
        """Change the state of a host."""
        self._hosts[root] = self._after(self._hosts[root], allocations)


class Gradient:
    """The losses of the hosts of a request, under the scoring ``fragmentation``.

    :param summaries: ``provider_summaries`` of Placement's answer.
    :param groups: the request groups of the server.
    :ivar kinds: the kinds of the hosts.
    """

    def __init__(
        self,
        summaries: Mapping[str, Summary],
        groups: Iterable[RequestGroup],
        scale: Scale,
        history: History,
    ) -> None:
        self._shape = ServerShape.of(groups)
        self._history = history
        self._room = history.note(self._shape, scale)
        self._states = GradientStates(summaries, self._room)
        self.kinds = HostKinds(summaries, self._room.wanted)
        self._outcomes: dict[str, list[Host]] = {}
        self._known: dict[str, tuple[float, list[float]]] = {}

    @property
    def free(self) -> Mapping[str, dict[str, int]]:
        """The free amounts of each host by root provider; the caller may change them."""
        return self._states.free

    def renew(self, scale: Scale, summaries: Callable[[], Mapping[str, Summary]]) -> bool:
        """Begin another request for an equal server.

        :param summaries: returns the summaries of all hosts as they are now.
        :returns: whether the candidates of all hosts have to be offered again.
        """
        before, self._room = self._room, self._history.note(self._shape, scale)
        if self._room is not before:
            self._known.clear()
        if self._room.usable is before.usable:
            return False
        present = summaries()
        self._states = GradientStates(present, self._room)
        self.kinds = HostKinds(present, self._room.wanted)
        self._outcomes.clear()
        return True

    def offer(self, root: str, candidates: Sequence[Allocations]) -> None:
        """Note the candidates of a host."""
        self._outcomes[root] = self._states.after(root, candidates)
        self._known.pop(root, None)

    def loss(self, root: str) -> float:
        """Return the loss of the best candidate of a host; 0 if no candidates were offered."""
        least, _ = self._known.get(root) or self._losses(root)
        return least

    def best(self, root: str) -> int:
        """Return the number of the best candidate that was offered; of equal ones the first."""
        least, losses = self._known.get(root) or self._losses(root)
        return losses.index(least)

    def claim(self, root: str, allocations: Allocations) -> None:
        """Subtract the allocations of a server; the host needs new candidates then."""
        self._states.claim(root, allocations)
        self._outcomes.pop(root, None)
        self._known.pop(root, None)

    def _losses(self, root: str) -> tuple[float, list[float]]:
        """Return the least of the losses of a host's candidates, and all of them."""
        room = self._room.of
        before = room(self._states.of(root))
        losses = [before - room(after) for after in self._outcomes.get(root, ())]
        known = self._known[root] = min(losses, default=0.0), losses
        return known
