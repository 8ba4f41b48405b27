"""How many more servers of a flavor the hosts of a cloud take, one claim after the other.

A claim takes an allocation candidate, and a candidate stays the same while its providers have
room: Placement looks at the smallest and the largest amount and the step size of a resource class
for each claim alone. So a single answer of Placement gives the number of claims with room. Hosts
are independent, except for sharing providers, for example a storage pool. Pure.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple, TypeVar

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.tools.room.repeated_packing import Package, RepeatedPacking, Rooms

Row = tuple[str, str]
"""The uuid of a provider, and a resource class of the provider."""

_CLASS_OF_ROW = itemgetter(1)

Place = TypeVar("Place")

Amounts = frozenset[tuple[Row, int]]


class HostRoom(NamedTuple):
    """The servers of a host if no further host gets a server.

    :param more: the number of servers.
    :param limited_by: the resource class that ends; of several classes, the class without room in
        the most candidates.
    """

    more: int
    limited_by: str


class CloudRoom(NamedTuple):
    """The servers with room in a cloud.

    :param more: the number of servers; less than the sum of the hosts if a sharing provider ends.
    :param hosts: the hosts with candidates, by the uuid of the root provider.
    :param is_exact: ``False`` if a search was cut short; then more servers may fit.
    :param can_be_freed: there is no room, but a host without its servers would have room.
    """

    more: int
    hosts: Mapping[str, HostRoom]
    is_exact: bool = True
    can_be_freed: bool = False


def more_servers(answer: CandidatesAnswer) -> CloudRoom:
    """Return how many servers of a request can be claimed, each with any candidate.

    :param answer: all usable candidates of the request.
    """
    room = _room(answer)
    claims_by_host = _claims_of_hosts(answer)
    sharing = _sharing(answer, claims_by_host)
    hosts, is_exact = {}, True
    host_totals: dict[str, int] = {}
    for host, claims in claims_by_host.items():
        packing = RepeatedPacking(claims, room, _CLASS_OF_ROW)
        left = {**{row: room[row] for claim in claims for row in claim}, **packing.left}
        hosts[host] = HostRoom(packing.total, limiting(claims, left, _CLASS_OF_ROW))
        is_exact &= packing.is_exact
        if sharing.isdisjoint(row for claim in claims for row in claim):
            host_totals[host] = packing.total
    shared = {host: claims for host, claims in claims_by_host.items() if host not in host_totals}
    packing_of_shared = RepeatedPacking(*_joined(shared, sharing, room))
    return CloudRoom(
        sum(host_totals.values()) + packing_of_shared.total,
        hosts,
        is_exact and packing_of_shared.is_exact,
    )


def _room(answer: CandidatesAnswer) -> dict[Row, int]:
    """Return the free amount of each inventory."""
    return {
        (uuid, name): max(0, amounts["capacity"] - amounts["used"])
        for uuid, summary in answer.provider_summaries.items()
        for name, amounts in summary["resources"].items()
    }


def _claims_of_hosts(answer: CandidatesAnswer) -> dict[str, list[dict[Row, int]]]:
    """Return the amounts of each candidate, by the root provider of its host.

    The order of the candidates in the answer makes no difference.
    """
    claims = {
        host: [
            {
                (uuid, n): a
                for uuid, amounts in request.allocations.items()
                for n, a in amounts.items()
            }
            for request in requests
        ]
        for host, requests in sorted(answer.by_host().items())
    }
    for host_claims in claims.values():
        host_claims.sort(key=lambda amounts: sorted(amounts.items()))
    return claims


def _sharing(
    answer: CandidatesAnswer, claims: Mapping[str, Sequence[Mapping[Row, int]]]
) -> frozenset[Row]:
    """Return the rows of providers that serve a host of another tree."""
    return frozenset(
        row
        for host, host_claims in claims.items()
        for claim in host_claims
        for row in claim
        if answer.provider_summaries[row[0]]["root_provider_uuid"] != host
    )


def limiting(
    claims: Iterable[Package[Place]], left: Rooms[Place], class_of: Callable[[Place], str]
) -> str:
    """Return the scarce resource class: see :class:`HostRoom`.

    :param left: what is left after all claims, by what claims take.
    """
    blocked = Counter(
        name
        for claim in claims
        for name in {class_of(place) for place, amount in claim.items() if left[place] < amount}
    )
    return max(sorted(blocked), key=blocked.__getitem__, default="")


def _choices_by_pool(
    claims: Iterable[Mapping[Row, int]], sharing: frozenset[Row]
) -> dict[Amounts, set[Amounts]]:
    """Return the choices of a host's own providers for each choice of sharing providers."""
    choices: dict[Amounts, set[Amounts]] = {}
    for claim in claims:
        pool = frozenset(item for item in claim.items() if item[0] in sharing)
        choices.setdefault(pool, set()).add(frozenset(claim.items()) - pool)
    return choices


def _joined(
    claims: Mapping[str, Sequence[Mapping[Row, int]]],
    sharing: frozenset[Row],
    room: Mapping[Row, int],
) -> tuple[list[dict[object, int]], dict[object, int]]:
    """Return packages and rows for all hosts that take part in sharing providers.

    The amounts of most hosts are a product: each choice of own providers goes with each choice of
    sharing providers. The own rows then only limit the number of servers of the host. Hosts with
    equal choices of sharing providers have a common row with the sum of their limits, and a
    package for each choice. So the size of the program does not grow with the number of hosts.
    """
    rows: dict[object, int] = {row: room[row] for row in sharing}
    packages: list[dict[object, int]] = []
    limits: Counter[frozenset[Amounts]] = Counter()
    for host_claims in claims.values():
        choices = _choices_by_pool(host_claims, sharing)
        first_choices = next(iter(choices.values()))
        if all(other == first_choices for other in choices.values()):
            limits[frozenset(choices)] += RepeatedPacking(
                map(dict, first_choices), room, _CLASS_OF_ROW
            ).total
        else:
            packages += [dict(claim.items()) for claim in host_claims]
            rows |= {row: room[row] for claim in host_claims for row in claim}
    for pools, limit in limits.items():
        rows[pools] = limit
        packages += [{**dict(pool), pools: 1} for pool in pools]
    return packages, rows
