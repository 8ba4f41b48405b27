"""The requests for servers in the order of time: of a table, drawn, or of past servers. Pure."""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.masking import masked_flavor

COLUMNS = ("time", "flavor", "lifetime")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A server without a host yet.

    :param time: the time of the request, in any unit.
    :param flavor: the name of the flavor.
    :param lifetime: how long the server stays, in the same unit; ``None`` for ever.
    """

    time: float
    flavor: str
    lifetime: float | None = None


def read_arrivals(
    lines: Iterable[str], flavors: Iterable[str] | None, *, where: str
) -> list[Arrival]:
    """Return the requests of a CSV table, sorted by time.

    The columns are ``time``, ``flavor`` and, for servers that depart, ``lifetime``.

    :param flavors: the names of the flavors that there are; ``None`` for any names.
    :raises InvalidInput: with every fault of the table.
    """
    table = csv.DictReader(lines, restkey="…")
    columns = table.fieldnames or ()
    if not {"time", "flavor"} <= set(columns) <= set(COLUMNS):
        raise InvalidInput.of(
            f"{where}, line 1",
            f"the columns {', '.join(columns) or 'are missing'}",
            f"give {', '.join(COLUMNS)}; the last may be missing",
        )
    faults = FaultList()
    arrivals = []
    names = None if flavors is None else frozenset(flavors)
    for row in table:
        with faults:
            arrivals.append(_arrival(row, names, f"{where}, line {table.line_num}"))
    if not arrivals and not faults.faults:
        faults.add(where, "no requests", "give a line for each request")
    faults.raise_if_any()
    return sorted(arrivals, key=lambda arrival: arrival.time)


def draw_arrivals(
    count: int, shares: Mapping[str, float], stay: float | None, rng: random.Random
) -> list[Arrival]:
    """Return drawn requests, a unit of time apart.

    :param shares: how often each flavor is drawn, relative to the other flavors.
    :param stay: the mean number of requests that come while a server stays, of an exponential
        distribution; ``None`` for ever.
    """
    names = rng.choices(list(shares), weights=list(shares.values()), k=count)
    return [
        Arrival(
            time=float(number),
            flavor=name,
            lifetime=None if stay is None else rng.expovariate(1 / stay),
        )
        for number, name in enumerate(names)
    ]


def _arrival(row: Mapping[str, str | None], flavors: frozenset[str] | None, where: str) -> Arrival:
    faults = FaultList()
    time = faults.read(_number, f"{where}, time", row.get("time"))
    lifetime = None
    if row.get("lifetime"):
        lifetime = faults.read(_number, f"{where}, lifetime", row["lifetime"])
    flavor = row.get("flavor") or ""
    if flavors is not None and flavor not in flavors:
        faults.add(f"{where}, flavor", f"got {flavor!r}", "name a flavor of the snapshot")
    if "…" in row:
        faults.add(where, "more fields than columns", "give a field for each column")
    faults.raise_if_any()
    return Arrival(time=time or 0.0, flavor=flavor, lifetime=lifetime)


def _number(where: str, text: str | None) -> float:
    try:
        number = float(text or "")
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < 0:
        raise InvalidInput.of(where, f"got {text!r}", "give a number of at least 0")
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class PastServer:
    """A present or past server.

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
