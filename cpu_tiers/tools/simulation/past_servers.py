"""The servers that a cloud has had, as requests for a simulation. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.simulation.masking import masked_flavor
from cpu_tiers.tools.simulation.requests import COLUMNS, Arrival


@dataclass(frozen=True, slots=True, kw_only=True)
class PastServer:
    """A server that exists or existed.

    :param ended: ``None`` for a server that exists.
    """

    created: datetime
    ended: datetime | None
    flavor: Flavor


def to_requests(
    servers: Iterable[PastServer], *, is_masked: bool = False
) -> tuple[list[Arrival], list[Flavor]]:
    """Return the requests in the order of time, and their flavors.

    Times are seconds since the first request. Of two flavors that have the same name and differ in
    anything else, the later gets another name.

    :param is_masked: give the flavors numbers as names, and leave out the extra specs that do not
        decide about hosts.
    """
    in_order = sorted(servers, key=lambda server: server.created)
    names: dict[str, tuple[str, Flavor]] = {}
    taken: set[str] = set()
    arrivals = []
    for server in in_order:
        key = repr(server.flavor)  # a flavor has a dict of extra specs, which has no hash
        if key not in names:
            number = len(names) + 1
            name = f"flavor-{number}" if is_masked else _unique(server.flavor.name, taken)
            taken.add(name)
            flavor = server.flavor._replace(name=name)
            names[key] = name, masked_flavor(flavor, name) if is_masked else flavor
        lifetime = None
        if server.ended is not None:
            lifetime = max(0.0, (server.ended - server.created).total_seconds())
        time = (server.created - in_order[0].created).total_seconds()
        arrivals.append(Arrival(time=time, flavor=names[key][0], lifetime=lifetime))
    return arrivals, [flavor for _, flavor in names.values()]


def to_rows(arrivals: Iterable[Arrival]) -> Iterator[Sequence[object]]:
    """Yield the rows of the table of requests, the names of the columns first."""
    yield COLUMNS
    for arrival in arrivals:
        lifetime = "" if arrival.lifetime is None else f"{arrival.lifetime:.0f}"
        yield f"{arrival.time:.0f}", arrival.flavor, lifetime


def _unique(name: str, taken: set[str]) -> str:
    names = (name if number == 1 else f"{name} ({number})" for number in count(1))
    return next(other for other in names if other not in taken)
