"""Faults of Placement and of Nova's database, in requests and queries of cpu-tiers.

Each request from the n-th on fails, or only the n-th. A query of the database takes the place of a
request. In the tests nova-compute reads the database directly; the exceptions that nova-conductor
would return reach cpu-tiers from the same call.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import oslo_messaging
from nova import exception
from oslo_db.exception import DBConnectionError

from tests.nova.traffic import Send, path_of
from tests.placement_faults import FAULTS, Fault


def _raising(error: type[Exception], *args: Any, **kwargs: Any) -> Fault:
    def fault(send: Send) -> Any:
        raise error(*args, **kwargs)

    return fault


DATABASE_FAULTS: dict[str, Fault] = {
    "DBConnectionError": _raising(DBConnectionError, "lost connection"),
    "MessagingTimeout": _raising(oslo_messaging.MessagingTimeout, "no answer of nova-conductor"),
    "RemoteError": _raising(oslo_messaging.RemoteError, "OperationalError", "lost connection", []),
    "InstanceNotFound": _raising(exception.InstanceNotFound, instance_id="deleted meanwhile"),
    "OrphanedObjectError": _raising(
        exception.OrphanedObjectError, method="obj_load_attr", objtype="Instance"
    ),
}
"""The faults of Nova's database, and of nova-conductor, through which nova-compute reads it."""


@dataclass(frozen=True, slots=True, order=True)
class Case:
    """A fault in one operation.

    :param number: the number of the request of cpu-tiers in the operation, from 1 on.
    :param for_ever: the following requests of cpu-tiers in the operation fail, too.
    """

    operation: str
    number: int
    kind: str
    for_ever: bool

    def __str__(self) -> str:
        until = "from then on" if self.for_ever else "once"
        return f"{self.operation}, request {self.number}, {self.kind} {until}"


def cases_of(operation: str, requests: int, kinds: Iterable[str] = FAULTS) -> list[Case]:
    """Return all cases of an operation that sends a number of requests of cpu-tiers."""
    return [
        Case(operation, number, kind, for_ever)
        for number in range(1, requests + 1)
        for kind in kinds
        for for_ever in (False, True)
    ]


class BrokenAnswers:
    """Answers the requests of cpu-tiers: with the fault of a case, while there is a case."""

    def __init__(self, faults: Mapping[str, Fault] = MappingProxyType(FAULTS)) -> None:
        self.faults = faults
        self.case: Case | None = None
        self.count = 0
        self.failed: list[str] = []
        """The methods and paths of the requests that had the fault of the last case."""

    def begin(self, case: Case | None) -> None:
        """Have the fault of a case from now on; ``None`` ends it."""
        self.case, self.count, self.failed = case, 0, []

    def end(self) -> None:
        """Have no fault any more, and keep what has failed."""
        self.case = None

    def __call__(self, send: Send, method: str, url: str) -> Any:
        """Answer a request."""
        self.count += 1
        case = self.case
        if case is None or self.count < case.number:
            return send()
        if self.count > case.number and not case.for_ever:
            return send()
        self.failed.append(path_of(method, url))
        return self.faults[case.kind](send)
