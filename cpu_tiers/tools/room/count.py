"""How many more servers of a request the hosts take: one counter for all commands.

A server takes a place, and a place stays the same while its rows have room: Placement looks at the
smallest and the largest amount and the step size of a resource class for each claim alone. So the
free amounts and the places tell the number of servers. Hosts are independent, except for common
rows, as those of a storage pool. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from math import prod
from operator import itemgetter
from typing import NamedTuple, TypeVar

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.tools.cloud_model.providers import HostLayout, HostProviders, Row
from cpu_tiers.tools.room.free import Amounts, FreeAmounts
from cpu_tiers.tools.room.places import Place, Places, fits
from cpu_tiers.tools.room.repeated_packing import (
    Package,
    RepeatedPacking,
    Rooms,
    needed_packages,
    packed_apart,
)

_CLASS_OF_ROW = itemgetter(1)

Claim = Mapping[Row, int]
"""A place by the rows of a cloud."""

Key = TypeVar("Key")


class HostRoom(NamedTuple):
    """The servers of a host if no further host gets a server.

    :param more: the number of servers.
    :param limited_by: the resource class that ends; of several classes, the class without room in
        the most places.
    """

    more: int
    limited_by: str


class CloudRoom(NamedTuple):
    """The servers with room in a cloud.

    :param more: the number of servers; less than the sum of the hosts if a sharing provider ends.
    :param hosts: the hosts with places, by the uuid of the root provider.
    :param is_exact: ``False`` if a search was cut short; then more servers may fit.
    :param can_be_freed: there is no room, but a host without its servers would have room.
    """

    more: int
    hosts: Mapping[str, HostRoom]
    is_exact: bool = True
    can_be_freed: bool = False


class PackedHosts:
    """A largest number of servers on hosts that may have common rows.

    :param claims: the places with room, by the root provider of the host.
    :param free: the free amount of each row.
    :ivar hosts: the room of each host by itself.
    """

    def __init__(self, claims: Mapping[str, Sequence[Claim]], free: Callable[[Row], int]) -> None:
        self._free = free
        self.hosts: dict[str, HostRoom] = {}
        self._alone: list[RepeatedPacking[Row]] = []
        self._groups: dict[frozenset[Amounts], list[RepeatedPacking[Row]]] = defaultdict(list)
        hosts_of_row = Counter(
            row for each in claims.values() for row in {row for claim in each for row in claim}
        )
        common = frozenset(row for row, hosts in hosts_of_row.items() if hosts > 1)
        self.is_exact, bound = True, list[Claim]()
        for host, host_claims in claims.items():
            rows = {row: free(row) for claim in host_claims for row in claim}
            packing = RepeatedPacking(host_claims, rows, _CLASS_OF_ROW)
            left = {**rows, **packing.left}
            self.hosts[host] = HostRoom(packing.total, limiting(host_claims, left, _CLASS_OF_ROW))
            self.is_exact &= packing.is_exact
            if common.isdisjoint(rows):
                self._alone.append(packing)
            elif not self._add_to_group(host_claims, common):
                bound += host_claims
        self._common = self._joined(bound, common)
        self.is_exact &= self._common.is_exact

    @property
    def room(self) -> CloudRoom:
        """Return the number of servers, of all hosts and of each host."""
        more = sum(packing.total for packing in self._alone) + self._common.total
        return CloudRoom(more, self.hosts, self.is_exact)

    def taken(self) -> Iterator[tuple[Amounts, int]]:
        """Yield each place that the servers take, and how many servers take it."""
        for packing in self._alone:
            yield from _counts(packing)
        own = {pools: _each_own(group) for pools, group in self._groups.items()}
        for package, count in zip(self._common.packages, self._common.counts, strict=True):
            pool = {row: n for row, n in package.items() if not isinstance(row, frozenset)}
            pools = next((row for row in package if isinstance(row, frozenset)), None)
            for _ in range(count):
                claim = pool if pools is None else {**pool, **next(own[pools])}
                yield tuple(sorted(claim.items())), 1

    def _add_to_group(self, claims: Iterable[Claim], common: frozenset[Row]) -> bool:
        """Join a host with the hosts of equal choices of common rows.

        The amounts of most hosts are a product: each choice of own rows goes with each choice of
        common rows. The own rows then only limit the number of servers of the host.
        """
        choices = _choices(claims, common)
        first, *others = choices.values()
        if any(other != first for other in others):
            return False
        own_claims = list(map(dict, sorted(first)))
        rows = {row: self._free(row) for claim in own_claims for row in claim}
        if rows:
            packing = RepeatedPacking(own_claims, rows, _CLASS_OF_ROW)
            self.is_exact &= packing.is_exact
            self._groups[frozenset(choices)].append(packing)
        return bool(rows)

    def _joined(
        self, claims: Iterable[Claim], common: Iterable[Row]
    ) -> RepeatedPacking[Row | frozenset[Amounts]]:
        """Pack the hosts with common rows together.

        The hosts of a group have a common row with the sum of their limits, and a package for
        each choice. So the size of the program does not grow with the number of hosts.

        :param claims: of the hosts whose choices are no product.
        """
        rows: dict[Row | frozenset[Amounts], int] = {row: self._free(row) for row in common}
        packages = list[Mapping[Row | frozenset[Amounts], int]]()
        for claim in claims:
            packages.append(dict(claim.items()))
            rows |= {row: self._free(row) for row in claim}
        for pools, group in self._groups.items():
            rows[pools] = sum(packing.total for packing in group)
            packages += [{**dict(pool), pools: 1} for pool in sorted(pools)]
        return RepeatedPacking(packages, rows)


def _choices(claims: Iterable[Claim], common: frozenset[Row]) -> dict[Amounts, set[Amounts]]:
    """Return the choices of own rows for each choice of common rows."""
    choices: dict[Amounts, set[Amounts]] = {}
    for claim in claims:
        pool = {row: amount for row, amount in claim.items() if row in common}
        own = tuple(sorted(claim.items() - pool.items()))
        choices.setdefault(tuple(sorted(pool.items())), set()).add(own)
    return choices


def _counts(packing: RepeatedPacking[Row]) -> Iterator[tuple[Amounts, int]]:
    for package, count in zip(packing.packages, packing.counts, strict=True):
        if count:
            yield tuple(sorted(package.items())), count


def _each_own(group: Iterable[RepeatedPacking[Row]]) -> Iterator[Claim]:
    """Yield the choice of own rows of each server of a group of hosts."""
    for packing in group:
        for amounts, count in _counts(packing):
            for _ in range(count):
                yield dict(amounts)


def more_servers(answer: CandidatesAnswer) -> CloudRoom:
    """Return how many servers of a request can be claimed, each with any candidate.

    :param answer: all usable candidates of the request.
    """
    free = {
        (uuid, name): max(0, amounts["capacity"] - amounts["used"])
        for uuid, summary in answer.provider_summaries.items()
        for name, amounts in summary["resources"].items()
    }
    claims = {
        host: [
            {
                (uuid, name): amount
                for uuid, amounts in request.allocations.items()
                for name, amount in amounts.items()
            }
            for request in requests
        ]
        for host, requests in sorted(answer.by_host().items())
    }
    for host_claims in claims.values():  # the order of the answer makes no difference
        host_claims.sort(key=lambda claim: sorted(claim.items()))
    return PackedHosts(claims, free.__getitem__).room


def limiting(
    claims: Iterable[Package[Key]], left: Rooms[Key], class_of: Callable[[Key], str]
) -> str:
    """Return the scarce resource class: see :class:`HostRoom`.

    :param left: what is left after all claims, by what claims take.
    """
    blocked = Counter(
        name
        for claim in claims
        for name in {class_of(row) for row, amount in claim.items() if left[row] < amount}
    )
    return max(sorted(blocked), key=blocked.__getitem__, default="")


class FreeChoice(NamedTuple):
    """The inventories of which a server takes the amount of a resource class, from any of them."""

    name: str
    amount: int
    numbers: tuple[int, ...]


class _Prepared(NamedTuple):
    """The places with room on a host, and the part needed by a largest packing.

    :param choices: see :func:`free_choices`.
    """

    fitting: tuple[Place, ...]
    needed: tuple[Package[int], ...]
    choices: tuple[FreeChoice, ...]


def free_choices(places: Iterable[Place], names: Sequence[str]) -> tuple[FreeChoice, ...]:
    """Return the choices of each resource class, if each goes with each; empty if not.

    A host without NUMA nodes in the query gives a server any of its inventories of each class.

    :param names: the resource class of each inventory.
    """
    distinct = {frozenset(place.items()) for place in places}
    parts: dict[tuple[str, int], set[int]] = {}
    for place in distinct:
        for number, amount in place:
            parts.setdefault((names[number], amount), set()).add(number)
    has_all = len(distinct) == prod(map(len, parts.values()))
    each_has_one = all(
        len({names[number] for number, _ in place}) == len(place) == len(parts)
        for place in distinct
    )
    if not (has_all and each_has_one):
        return ()
    return tuple(
        FreeChoice(*resource_class, tuple(numbers)) for resource_class, numbers in parts.items()
    )


class Count:
    """Counts the servers of a request on the hosts of a cloud.

    Hosts of one layout have equal places, as far as the places have room. The packing is prepared
    once for all hosts with room in equal places, and most hosts cost a few divisions.
    """

    def __init__(self, places: Places) -> None:
        self._cloud, self._places = places.cloud, places
        self._prepared: dict[object, _Prepared] = {}
        self._names: dict[HostLayout, tuple[str, ...]] = {}

    def room(self, free: FreeAmounts, closed: Collection[str] = ()) -> CloudRoom:
        """Return the room of all hosts.

        :param closed: the root providers of hosts that take no servers.
        """
        hosts, others = dict[str, HostRoom](), dict[str, Sequence[Claim]]()
        for host in self._cloud.hosts:
            if host.root in closed or host.is_pool:
                continue
            room = self._alone(host, free) if self._cloud.is_alone(host.root) else None
            if room is None:
                if claims := self._claims(host, free):
                    others[host.root] = claims
            elif room.more:
                hosts[host.root] = room
        packed = PackedHosts(others, free.of).room
        more = packed.more + sum(room.more for room in hosts.values())
        return packed._replace(more=more, hosts={**packed.hosts, **hosts})

    def packed(self, free: FreeAmounts, closed: Collection[str], most: float) -> list[Amounts]:
        """Return a place for each new server with room, at most so many.

        :param closed: as for :meth:`room`.
        """
        taken = list[Amounts]()
        common = dict[str, Sequence[Claim]]()
        for host in self._cloud.hosts:
            if len(taken) >= most:
                break
            if host.root in closed or host.is_pool or not (claims := self._claims(host, free)):
                continue
            if self._cloud.is_alone(host.root):
                _extend(taken, PackedHosts({host.root: claims}, free.of), most)
            else:
                common[host.root] = claims
        if len(taken) < most:
            _extend(taken, PackedHosts(common, free.of), most)
        return taken

    def _claims(self, host: HostProviders, free: FreeAmounts) -> Sequence[Claim]:
        return list(map(dict, self._places.now(host, free)))

    def _alone(self, host: HostProviders, free: FreeAmounts) -> HostRoom | None:
        """Return the room of a host; ``None`` if the places compete for the same amounts."""
        solvers, places = self._places.prepared(host)
        if places is None:
            return None
        amounts = free.of_host(host)
        fitting = tuple([fits(place, amounts) for place in places])
        if not any(fitting):
            return HostRoom(0, "")
        key = solvers, fitting
        if key not in self._prepared:
            chosen = tuple(p for p, is_fitting in zip(places, fitting, strict=True) if is_fitting)
            choices = free_choices(chosen, self._names_of(host))
            needed = () if choices else needed_packages(chosen, dict(enumerate(amounts)))
            self._prepared[key] = _Prepared(chosen, needed, choices)
        return self._divided(host, self._prepared[key], amounts)

    def _divided(
        self, host: HostProviders, prepared: _Prepared, free: Sequence[int]
    ) -> HostRoom | None:
        if prepared.choices:
            mores = {
                name: sum([free[number] // amount for number in numbers])
                for name, amount, numbers in prepared.choices
            }
            more = min(mores.values())
            return HostRoom(more, min(name for name, each in mores.items() if each == more))
        counts = packed_apart(prepared.needed, free)
        if counts is None:
            return None
        left = list(free)
        for package, count in zip(prepared.needed, counts, strict=True):
            for number, amount in package.items():
                left[number] -= count * amount
        class_of = self._names_of(host).__getitem__
        return HostRoom(sum(counts), limiting(prepared.fitting, left, class_of))

    def _names_of(self, host: HostProviders) -> tuple[str, ...]:
        """Return the resource class of each inventory of a host."""
        if host.layout not in self._names:
            self._names[host.layout] = tuple(name for _, name in host.rows)
        return self._names[host.layout]


def _extend(taken: list[Amounts], packed: PackedHosts, most: float) -> None:
    for amounts, count in packed.taken():
        taken += [amounts] * int(min(count, most - len(taken)))
