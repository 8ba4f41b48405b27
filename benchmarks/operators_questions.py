"""Measure ``cpu-tiers explain`` and ``cpu-tiers capacity`` on clouds of many hosts.

The Placement is embedded and its database is written directly. The figures are requests, and CPU
seconds of the library apart from CPU seconds of Placement. Run:
``python benchmarks/operators_questions.py [HOSTS]``; needs the extra ``embedded``.
"""

import sqlite3
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.numa import NODE_TRAIT, SMALL_PAGES_TRAIT
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.embedded import embedded_placement
from cpu_tiers.tools.placement.explanation import explain
from cpu_tiers.tools.placement.room import read_room
from cpu_tiers.tools.room.server_queries import Request, server_queries
from cpu_tiers.translators import ServerRequest

NODES = 2
"""NUMA nodes of each host of the cloud with NUMA nodes."""


@dataclass(kw_only=True)
class Watched:
    """The transport of the client: counts requests, and the CPU seconds inside of Placement."""

    transport: Any
    requests: int = 0
    seconds: float = 0.0

    def request(self, *arguments: Any, **options: Any) -> Any:
        """Pass a request on."""
        start = time.process_time()
        try:
            return self.transport.request(*arguments, **options)
        finally:
            self.requests += 1
            self.seconds += time.process_time() - start


def main(hosts: int) -> None:
    """Print a line for each question and each kind of hosts."""
    for has_nodes in (False, True):
        with embedded_placement() as client:
            client.ensure_names([VCPU_SHARES], [NODE_TRAIT, SMALL_PAGES_TRAIT])
            _write(hosts, has_nodes=has_nodes)
            watched = Watched(transport=client._exchange._transport)
            asking = PlacementClient(watched)
            queries = _queries(has_nodes=has_nodes)
            kind = f"{hosts} hosts {'with' if has_nodes else 'without'} NUMA nodes"
            _measure(f"explain, {kind}", watched, partial(explain, asking, queries))
            _measure(f"capacity, {kind}", watched, partial(read_room, asking, [queries]))


def _measure(what: str, watched: Watched, call: Callable[[], object]) -> None:
    watched.requests, watched.seconds = 0, 0.0
    start = time.process_time()
    call()
    ours = time.process_time() - start - watched.seconds
    print(
        f"{what}: {watched.requests} requests,"
        f" {ours:.1f} s of the library, {watched.seconds:.1f} s of Placement",
        flush=True,
    )


def _queries(*, has_nodes: bool) -> Request:
    specs = {"quota:cpu_shares_multiplier": "10", "trait:HW_CPU_X86_AVX2": "required"}
    if has_nodes:
        specs["hw:numa_nodes"] = "2"
    flavor = Flavor(name="gold", vcpus=4, memory_mb=4096, root_gb=10, extra_specs=specs)
    return server_queries(
        ServerRequest(flavor=flavor, query_vcpu_shares=True, query_numa=has_nodes)
    )


def _write(hosts: int, *, has_nodes: bool) -> None:
    """Write hosts whose use differs; each tenth host lacks the trait."""
    with _rows() as rows:
        for number in range(hosts):
            root = _provider(rows, f"host-{number:05}", None)
            _add(rows, root, "DISK_GB", 2000, number % 7 * 100)
            traits = ["COMPUTE_NODE", *(["HW_CPU_X86_AVX2"] if number % 10 else [])]
            for name in traits:
                _mark(rows, root, name)
            for node in range(NODES if has_nodes else 1):
                cpus = _provider(rows, f"host-{number:05}_NUMA{node}", root) if has_nodes else root
                memory = (
                    _provider(rows, f"host-{number:05}_NUMA{node}_PAGES_4", cpus)
                    if has_nodes
                    else root
                )
                if has_nodes:
                    _mark(rows, cpus, NODE_TRAIT)
                    _mark(rows, memory, SMALL_PAGES_TRAIT)
                _add(rows, cpus, "VCPU", 64, (number * 5 + node) % 60)
                _add(rows, cpus, VCPU_SHARES, 6400, number % 11 * 300)
                _add(rows, memory, "MEMORY_MB", 131072, (number + node) % 13 * 8192)


@contextmanager
def _rows() -> Iterator[sqlite3.Connection]:
    from placement import db_api

    pooled = db_api.get_placement_engine().raw_connection()
    try:
        with pooled.driver_connection as connection:  # a transaction
            yield connection
    finally:
        pooled.close()


def _provider(rows: sqlite3.Connection, name: str, parent: int | None) -> int:
    written = rows.execute(
        "INSERT INTO resource_providers (uuid, name, generation, parent_provider_id,"
        " root_provider_id) SELECT ?, ?, 0, ?, (SELECT root_provider_id FROM resource_providers"
        " WHERE id = ?)",
        (str(uuid.uuid4()), name, parent, parent),
    )
    row = written.lastrowid
    assert row is not None
    if parent is None:
        rows.execute("UPDATE resource_providers SET root_provider_id = id WHERE id = ?", (row,))
    return row


def _add(rows: sqlite3.Connection, provider: int, name: str, total: int, used: int) -> None:
    of_class = "SELECT ?, ?, ?, c.id FROM resource_classes c WHERE c.name = ?"
    rows.execute(
        "INSERT INTO inventories (total, reserved, min_unit, max_unit, step_size,"
        " allocation_ratio, resource_provider_id, resource_class_id)"
        " SELECT ?, 0, 1, ?, 1, 1.0, ?, c.id FROM resource_classes c WHERE c.name = ?",
        (total, total, provider, name),
    )
    if used:
        rows.execute(
            "INSERT INTO allocations (consumer_id, used, resource_provider_id, resource_class_id) "
            + of_class,
            ("others", used, provider, name),
        )


def _mark(rows: sqlite3.Connection, provider: int, name: str) -> None:
    rows.execute(
        "INSERT INTO resource_provider_traits (resource_provider_id, trait_id)"
        " SELECT ?, t.id FROM traits t WHERE t.name = ?",
        (provider, name),
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
