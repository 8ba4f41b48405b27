"""Measure NUMA queries of each form on a real Placement, with MariaDB or PostgreSQL.

The database is empty and named by its SQLAlchemy URL, in ``--connection`` or, under
``pifpaf``, in the environment. Hosts have 2 or 4 nodes, each with memory in pages
of two sizes; forms take turns, and the median of the rounds counts.
"""

import argparse
import gc
import json
import logging
import os
import statistics
import sys
import time
import uuid
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import webob  # type: ignore[import-untyped]  # has none; comes with Placement
from measure import Ratio, report
from oslo_config import cfg

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import NUMA_SERVER, standard_traits
from cpu_tiers.model.numa import CELL_TRAIT, NODE_TRAIT, count_traits, page_traits
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.translators import ServerRequest, translate
from cpu_tiers.translators.numa import cheaper

GOAL = 0.75
MOST_NODES_UNBOUNDED = 2
"""Guests of more nodes take hours without a bound: on a host of 4 nodes the spec's form has
Placement look at 4 ** 12 combinations for a guest of 4."""

LIMIT = 1000
"""What Nova sends: ``[scheduler] max_placement_results``."""

STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "as installed": {},
    "1,000, depth first": {"max_allocation_candidates": 1000},
    "1,000, breadth first": {
        "max_allocation_candidates": 1000,
        "allocation_candidates_generation_strategy": "breadth-first",
    },
}


class Placement:
    """Placement's application in this process, over a database of its own."""

    def __init__(self, connection: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from placement import conf, db_api, deploy
        self.config = cfg.ConfigOpts()
        conf.register_opts(self.config)
        self.config.set_override("connection", connection, "placement_database")
        self.config.set_override("sync_on_startup", True, "placement_database")
        self.config.set_override("auth_strategy", "noauth2", "api")
        self.config([], project="placement", default_config_files=[], default_config_dirs=[])
        db_api.configure(self.config)
        self.app = deploy.loadapp(self.config)
        self.engine = db_api.get_placement_engine()

    def ask(self, method: str, path: str) -> tuple[int, Any]:
        """Return the status and the body of an answer."""
        headers = {"X-Auth-Token": "admin", "OpenStack-API-Version": "placement 1.39"}
        answer = webob.Request.blank(path, method=method, headers=headers).get_response(self.app)
        return answer.status_code, json.loads(answer.body) if answer.body else None

    def configure(self, options: Mapping[str, Any]) -> None:
        """Set options of ``[placement]``; all other options keep their defaults."""
        for name in STRATEGIES["1,000, breadth first"]:
            self.config.clear_override(name, "placement")
        for name, value in options.items():
            self.config.set_override(name, value, "placement")

    def fill(self, hosts: int, nodes: int) -> None:
        """Add hosts to an empty database with SQL: the API would take an hour."""
        from placement.db.sqlalchemy import models

        tables = models.BASE.metadata.tables
        with self.engine.begin() as connection:
            ids = {
                row.name: row.id
                for kind in ("resource_classes", "traits")
                for row in connection.execute(tables[kind].select())
            }
            for table, rows in _rows(hosts, nodes, ids).items():
                connection.execute(tables[table].insert(), rows)


def _rows(hosts: int, nodes: int, ids: Mapping[str, int]) -> dict[str, list[dict[str, Any]]]:
    providers: list[dict[str, Any]] = []
    inventories: list[dict[str, Any]] = []
    traits: list[dict[str, Any]] = []

    def add(name: str, parent: int | None, amounts: Mapping[str, int], has: frozenset[str]) -> int:
        number = len(providers) + 1
        root = number if parent is None else providers[parent - 1]["root_provider_id"]
        providers.append(
            {"id": number, "uuid": str(uuid.uuid4()), "name": name, "generation": 1}
            | {"parent_provider_id": parent, "root_provider_id": root}
        )
        for resource_class, total in amounts.items():
            inventories.append(
                {"resource_provider_id": number, "resource_class_id": ids[resource_class]}
                | {"total": total, "max_unit": total, "min_unit": 1, "step_size": 1}
                | {"reserved": 0, "allocation_ratio": 1.0}
            )
        traits.extend({"resource_provider_id": number, "trait_id": ids[t]} for t in sorted(has))
        return number

    for host in range(hosts):
        of_root = {"DISK_GB": 1000, NUMA_SERVER: 10_000}
        root = add(f"cn{host}", None, of_root, count_traits(nodes))
        for cell in range(nodes):
            name, cpus = f"cn{host}_NUMA{cell}", {"VCPU": 16, "PCPU": 16}
            node = add(name, root, cpus, frozenset({NODE_TRAIT, f"{CELL_TRAIT}{cell}"}))
            for size_kb, total in ((4, 32768), (2048, 16384)):
                pages = page_traits(size_kb, smallest=size_kb == 4)
                add(f"{name}_PAGES_{size_kb}", node, {"MEMORY_MB": total}, pages)
    return {
        "resource_providers": providers,
        "inventories": inventories,
        "resource_provider_traits": traits,
    }


def _server(nodes: int, disk_gb: int) -> CandidateQuery:
    flavor = Flavor(
        name="f",
        vcpus=4 * nodes,
        memory_mb=4096 * nodes,
        root_gb=disk_gb,
        ephemeral_gb=0,
        swap_mb=0,
        extra_specs={"hw:numa_nodes": str(nodes)},
    )
    return translate(ServerRequest(flavor=flavor, query_numa=True))


def _without_anchor(query: CandidateQuery) -> CandidateQuery:
    """Return the fast form as it was before decision D105: the disk has a group of its own."""
    fast = cheaper(query)
    disk = tuple(group for group in query.groups if group.suffix == "_DISK")
    return fast._replace(groups=(*disk, *fast.groups[1:]), root_required=query.root_required)


FORMS = {"spec": lambda query: query, "without anchor": _without_anchor, "fast": cheaper}


def _found(body: Any) -> tuple[int, int, int]:
    """Return the numbers of candidates, of hosts, and of hosts with a usable candidate."""
    roots = {u: s["root_provider_uuid"] for u, s in body["provider_summaries"].items()}
    hosts, usable = set(), set()
    for request in body["allocation_requests"]:
        root = roots[next(iter(request["allocations"]))]
        hosts.add(root)
        cells = [uuids[0] for suffix, uuids in request["mappings"].items() if "_PROC" in suffix]
        if len(cells) == len(set(cells)):
            usable.add(root)
    return len(body["allocation_requests"]), len(hosts), len(usable)


def measure(placement: Placement, guest_nodes: int, disk_gb: int, rounds: int) -> Iterator[Ratio]:
    """Print a line for each strategy and form; yield the ratios to the form of the spec."""
    query = _server(guest_nodes, disk_gb)
    for strategy, options in STRATEGIES.items():
        if not options and guest_nodes > MOST_NODES_UNBOUNDED:
            continue
        placement.configure(options)
        paths = {
            name: f"/allocation_candidates?{form(query).to_query_string()}&limit={LIMIT}"
            for name, form in FORMS.items()
        }
        times: dict[str, list[float]] = {name: [] for name in paths}
        answers = {}
        for _ in range(rounds):
            for name, path in paths.items():
                gc.collect()
                start = time.perf_counter()
                answers[name] = placement.ask("GET", path)
                times[name].append(time.perf_counter() - start)
        for name, (status, body) in answers.items():
            if status != 200:
                sys.exit(f"{name}: HTTP {status}: {body}")
            candidates, hosts, usable = _found(body)
            median = statistics.median(times[name])
            print(
                f"    {strategy:<22}{name:<16}{median:8.2f} s{candidates:7} candidates"
                f"{hosts:6} hosts{usable:6} usable",
                flush=True,
            )
            if name == "fast":
                ratio = median / statistics.median(times["spec"])
                yield Ratio(what=f"{guest_nodes}: {strategy}", ratio=ratio, goal=GOAL, detail="")


def main() -> int:
    """Measure a cloud; return 1 if the goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    url = os.environ.get("PIFPAF_URL")
    if url:
        url = url.replace("mysql://", "mysql+pymysql://")
    parser.add_argument("--connection", default=url, required=url is None)
    parser.add_argument("--hosts", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=2, choices=(2, 4))
    parser.add_argument("--guest-nodes", type=int, nargs="*")
    parser.add_argument("--disk-gb", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    placement = Placement(arguments.connection)
    placement.ask("PUT", f"/resource_classes/{NUMA_SERVER}")
    traits = page_traits(4, smallest=True) | page_traits(2048, smallest=False)
    traits |= count_traits(arguments.nodes)
    traits |= {f"{CELL_TRAIT}{cell}" for cell in range(arguments.nodes)}
    for name in sorted(traits - standard_traits()):
        placement.ask("PUT", f"/traits/{name}")
    placement.fill(arguments.hosts, arguments.nodes)
    ratios: list[Ratio] = []
    for nodes in arguments.guest_nodes or range(1, arguments.nodes + 1):
        print(f"  {arguments.hosts} hosts of {arguments.nodes} nodes, a guest of {nodes}")
        ratios += measure(placement, nodes, arguments.disk_gb, arguments.rounds)
    return report("fast / spec", ratios)


if __name__ == "__main__":
    sys.exit(main())
