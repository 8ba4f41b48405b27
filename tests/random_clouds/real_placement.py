"""A real Placement with the cloud of a snapshot: its candidates, claims and largest packings."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy
import requests
from scipy.optimize import Bounds, LinearConstraint, milp

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.placement.embedded import WsgiApp, WsgiTransport
from tests import made_once
from tests.random_clouds.states import write_state
from tests.random_clouds.whole_clouds import DISABLED, SHARES, Json

Row = tuple[str, str]
Rows = Mapping[Row, int]
_NAMES = {
    "resource_classes": ["CARD", "METAL", "VCPU_SHARES", "NUMA_SERVER"],
    "traits": ["RED", "PHYSNET_FAST", "HW_NON_NUMA", "MEMORY_PAGE_SIZE_SMALL"]
    + [f"NUMA_NODES_{number}" for number in range(1, 9)],
}


class Candidate(NamedTuple):
    """An allocation candidate; ``host`` is the root provider of its CPUs and memory."""

    host: str
    rows: Rows
    allocations: Mapping[str, Mapping[str, int]]


class Refused(Exception):
    """Placement refuses a claim."""


class RealPlacement:
    """A Placement inside the process.

    :param url: where the application is served.
    :ivar free: the free amounts of all providers in the last answers.
    """

    def __init__(self, app: WsgiApp, url: str) -> None:
        self.url = url
        self._http = requests.Session()
        self._http.mount("http://", WsgiTransport(app))
        headers = {"OpenStack-API-Version": "placement 1.36", "X-Auth-Token": "admin"}
        self._http.headers.update(headers)
        for kind, names in _NAMES.items():
            for name in names:
                self._send("PUT", f"{kind}/CUSTOM_{name}")
        self._empty = made_once.copy_of_placement()
        self.free: dict[Row, int] = {}

    def _send(self, method: str, path: str, body: object = None) -> Any:
        answer = self._http.request(method, f"http://placement/{path}", json=body)
        if answer.status_code == 409:
            raise Refused(answer.text)
        assert answer.ok, answer.text
        return answer.json() if answer.content else None

    def load(self, cloud: Json) -> None:
        """Write the providers and the consumers of a snapshot in place of all others."""
        made_once.copy_to_placement(self._empty)
        write_state(
            [
                CloudProvider(
                    uuid=each["uuid"],
                    name=each["name"],
                    parent=each["parent_uuid"],
                    inventories={n: Inventory(**i) for n, i in each["inventories"].items()},
                    traits=frozenset(each["traits"]),
                    aggregates=frozenset(each["aggregates"]),
                )
                for each in cloud["providers"]
            ]
        )
        for consumer, allocations in cloud["consumers"].items():
            self.claim(consumer, allocations)

    def claim(self, consumer: str, allocations: Mapping[str, Mapping[str, int]]) -> None:
        """Claim for a new consumer.

        :raises Refused: Placement refuses.
        """
        held = {uuid: {"resources": amounts} for uuid, amounts in allocations.items()}
        body = {"allocations": held, "project_id": "p", "user_id": "u"}
        self._send("PUT", f"allocations/{consumer}", {**body, "consumer_generation": None})

    def release(self, consumers: Iterable[str]) -> None:
        """Delete the allocations of consumers."""
        for consumer in consumers:
            self._send("DELETE", f"allocations/{consumer}")

    def candidates(self, queries: Iterable[str]) -> list[Candidate]:
        """Return the candidates on which a guest can be placed, in an order that repeats."""
        found: dict[object, Candidate] = {}
        for query in queries:
            answer = self._send("GET", f"allocation_candidates?{query}")
            summaries = answer["provider_summaries"]
            self.free |= {
                (uuid, name): amounts["capacity"] - amounts["used"]
                for uuid, summary in summaries.items()
                for name, amounts in summary["resources"].items()
            }
            for request in answer["allocation_requests"]:
                nodes = [p[0] for s, p in request["mappings"].items() if s.startswith("_PROC")]
                held = {uuid: a["resources"] for uuid, a in request["allocations"].items()}
                rows = {(uuid, name): n for uuid, a in held.items() for name, n in a.items()}
                host = min(
                    (
                        name not in ("VCPU", "PCPU", "MEMORY_MB"),
                        SHARES in summaries[uuid]["traits"],
                        summaries[uuid]["root_provider_uuid"],
                    )
                    for uuid, name in rows
                )[2]
                if len(set(nodes)) == len(nodes):
                    found[frozenset(rows.items())] = Candidate(host, rows, held)
        return sorted(found.values(), key=lambda each: sorted(each.rows.items()))


def as_sent(query: str, aggregate: str = "") -> str:
    """Return a query with the trait of disabled hosts, which Nova forbids, and an aggregate."""
    parts = query.split("&") + ([f"member_of={aggregate}"] if aggregate else [])
    roots = [part.partition("=")[2] for part in parts if part.startswith("root_required=")]
    parts = [part for part in parts if not part.startswith("root_required=")]
    return "&".join([*parts, f"root_required={','.join([*roots, f'!{DISABLED}'])}"])


def as_vcpu(queries: Sequence[str]) -> list[str]:
    """Return Nova's second queries for dedicated CPUs, if any."""
    return [re.sub(r"\bPCPU:", "VCPU:", query) for query in queries if "PCPU:" in query]


def packing(columns: Sequence[Rows], free: Rows, *, fewest: bool = False) -> list[int]:
    """Return how often each column is taken, where as many as possible are and no further fits.

    :param fewest: as few as possible instead, as where each claim takes the worst place.
    """
    if not columns:
        return []
    rows = sorted({row for column in columns for row in column})
    takes = numpy.array([[column.get(row, 0) for column in columns] for row in rows])
    limits = numpy.array([max(0, free[row]) for row in rows])
    # No further column fits: of each column, a row has less left than the column's amount.
    lacks = sorted({part for column in columns for part in column.items()})
    of_row = [rows.index(row) for row, _ in lacks]
    used = limits[of_row] + 1 - [amount for _, amount in lacks]
    is_of = numpy.array([[part in column.items() for part in lacks] for column in columns])
    number = len(columns)
    found = milp(
        numpy.repeat([1 if fewest else -1, 0], [number, len(lacks)]),
        integrality=numpy.ones(number + len(lacks)),
        bounds=Bounds(0, numpy.repeat([numpy.inf, 1], [number, len(lacks)])),
        constraints=[
            LinearConstraint(numpy.pad(takes, ((0, 0), (0, len(lacks)))), ub=limits),
            LinearConstraint(numpy.hstack([takes[of_row], -numpy.diag(used)]), lb=0),
            LinearConstraint(numpy.pad(is_of, ((0, 0), (number, 0))).astype(int), lb=1),
        ],
        options={"mip_rel_gap": 0},
    )
    assert found.success, found.message
    return [round(value) for value in found.x[:number]]
