"""A decision of nova-scheduler: the request of a server, and the answers about each host.

The document is JSON; docs/admin/decision-record.rst describes the keys.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

MOST_HOSTS = 10
"""So many hosts of a list are named; the number of all hosts is told beside it."""


def named(hosts: Sequence[Any]) -> dict[str, Any]:
    """Return the number of host states, and the names of the first."""
    names = [str(getattr(host, "host", host)) for host in hosts[:MOST_HOSTS]]
    return {"number": len(hosts), "names": names}


@dataclass(slots=True, kw_only=True)
class Round:
    """The answers of filters, weighers and Placement about the hosts for a server.

    :param filters: for each filter, its name, the hosts it removed and how many it left.
    :param weights: for the best hosts, the weight and its parts by weigher.
    :param claims: for each claim, the providers and whether Placement granted the claim.
    """

    server: str | None
    filters: list[dict[str, Any]] = field(default_factory=list)
    weights: list[dict[str, Any]] = field(default_factory=list)
    claims: list[dict[str, Any]] = field(default_factory=list)

    def add_filter(self, name: str, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Note the hosts removed by a filter."""
        removed: Sequence[Any] = ()
        if len(after) < len(before):
            left = {id(host) for host in after}
            removed = [host for host in before if id(host) not in left]
        self.filters.append({"filter": name, "left": len(after), "removed": named(removed)})

    def add_weights(
        self, weighed: Sequence[Any], parts: Mapping[str, Mapping[int, float]]
    ) -> None:
        """Note the weights of the best hosts.

        :param weighed: Nova's weighed objects, the best first.
        :param parts: by weigher, multiplier times normalized weight, by the ``id`` of the host.
        """
        self.weights = [
            {
                "host": each.obj.host,
                "weight": each.weight,
                "parts": {name: of_host[id(each.obj)] for name, of_host in parts.items()},
            }
            for each in weighed[:MOST_HOSTS]
        ]


@dataclass(slots=True, kw_only=True)
class Decision:
    """A request to select hosts, from its arrival to its answer.

    :param queries: the queries for allocation candidates that were made of the request.
    """

    request_id: str | None
    servers: tuple[str, ...]
    flavor: str
    queries: list[str] = field(default_factory=list)
    candidates: dict[str, Any] = field(default_factory=lambda: named(()))
    rounds: list[Round] = field(default_factory=list)
    _arrived: datetime = field(default_factory=lambda: datetime.now(UTC))
    _started: float = field(default_factory=time.monotonic)

    def document(self, selections: Sequence[Sequence[Any]], fault: str | None) -> dict[str, Any]:
        """Return the decision as JSON.

        :param selections: for each server Nova's selections: the selected host, then alternates.
        """
        return {
            "time": self._arrived.isoformat(timespec="milliseconds"),
            "seconds": round(time.monotonic() - self._started, 3),
            "request_id": self.request_id,
            "servers": self.servers,
            "flavor": self.flavor,
            "queries": self.queries,
            "candidates": self.candidates,
            "rounds": list(map(asdict, self.rounds)),
            "selected": [
                {"host": own[0].service_host, "alternates": [s.service_host for s in own[1:]]}
                for own in selections
            ],
            "fault": fault,
        }
