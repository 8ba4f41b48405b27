"""A real Placement with the cloud of a snapshot: its candidates, claims and largest packings."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy
import requests
from scipy.optimize import Bounds, LinearConstraint, milp

from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.tools.placement.embedded import WsgiApp, WsgiTransport
from tests import made_once
from tests.random_clouds.providers import insert, placement_rows
from tests.random_clouds.whole_clouds import DISABLED, SHARES, Json

Row = tuple[str, str]
Rows = Mapping[Row, int]
_NAMES = {
    "resource_classes": ["CARD", "METAL", "VCPU_SHARES", "NUMA_SERVER"],
    "traits": ["RED", "PHYSNET_FAST", "HW_NON_NUMA", "MEMORY_PAGE_SIZE_SMALL"]
    + [f"NUMA_NODES_{number}" for number in range(1, 9)],
}
_AGGREGATE = """
    INSERT INTO resource_provider_aggregates (resource_provider_id, aggregate_id)
    SELECT p.id, a.id FROM resource_providers p, placement_aggregates a
    WHERE p.uuid = ? AND a.uuid = ?"""


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
        names = {each["uuid"]: each["name"] for each in cloud["providers"]}
        with placement_rows() as rows:
            for name in sorted({a for each in cloud["providers"] for a in each["aggregates"]}):
                rows.execute("INSERT INTO placement_aggregates (uuid) VALUES (?)", (name,))
            for each in cloud["providers"]:
                new = ResourceProvider(
                    name=each["name"],
                    parent=names.get(each["parent_uuid"]),
                    inventories={n: Inventory(**i) for n, i in each["inventories"].items()},
                    traits=frozenset(each["traits"]),
                )
                insert(rows, new, each["uuid"])
                for name in each["aggregates"]:
                    rows.execute(_AGGREGATE, (each["uuid"], name))
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


def most(
    columns: Sequence[Rows], free: Rows, choices: Iterable[Collection[int]] = ()
) -> list[int]:
    """Return how often each column is taken, where as many as possible are.

    :param choices: sets of columns of which one is taken at most: the places of a server.
    """
    if not columns:
        return []
    rows = sorted({row for column in columns for row in column})
    limits = [max(0, free[row]) for row in rows]
    matrix = [[column.get(row, 0) for column in columns] for row in rows]
    for each in choices:
        matrix.append([int(number in each) for number in range(len(columns))])
        limits.append(1)
    ones = numpy.ones(len(columns))
    bounds = LinearConstraint(numpy.array(matrix), -numpy.inf, limits)
    exact = {"mip_rel_gap": 0}
    found = milp(-ones, integrality=ones, bounds=Bounds(0), constraints=bounds, options=exact)
    assert found.success, found.message
    return [round(value) for value in found.x]


def never_compete(columns: Sequence[Rows]) -> bool:
    """Tell whether claims in any order, each of any candidate, are as many as possible.

    So it is where the candidates are all combinations of parts, a part of each kind: a host and a
    pool, or CPUs and a card. Rows that the same candidates take are a part.
    """
    takers: dict[Row, set[int]] = {}
    for number, column in enumerate(columns):
        for row in column:
            takers.setdefault(row, set()).add(number)
    if any(len({columns[n][row] for n in numbers}) > 1 for row, numbers in takers.items()):
        return False
    parts, left = {frozenset(numbers) for numbers in takers.values()}, set(range(len(columns)))
    while left:
        group = {min(left)}
        while further := frozenset().union(*(p for p in parts if p & group)) - group:
            group |= further
        inside = {part for part in parts if part & group}
        kinds = {frozenset(q for q in inside if p == q or not p & q) for p in inside}
        if sum(map(len, kinds)) != len(inside) or prod(map(len, kinds)) != len(group):
            return False
        left -= group
    return True
