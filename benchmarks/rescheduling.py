"""How well a number of migrations mends the fragments of a cluster: the measure of the literature.

    python benchmarks/rescheduling.py [CLUSTER.json] [--moves N]… [--seconds N] [--snapshot FILE]

CLUSTER.json is a list of clusters, as the data of VMR2L (NSDI 2024) can be written: ``hosts`` (for
each host its NUMA nodes: CPUs, free CPUs, MiB of huge pages, free MiB), ``servers`` (host; for
each part its node, CPUs and MiB; whether the server may move) and ``apart`` (sets of servers, by
their numbers, that must stand on different hosts). The free amounts follow from the servers.
Without a file, a cluster is drawn. All clusters of a file are one.

Prints for each number of moves which part of the free CPUs servers of 16 CPUs on one node cannot
use, and the bound that is proven. Goals: with the drawn cluster, no more than 0.03 above the
bound; for the cluster of 280 hosts the figures of docs/contributor/measured.rst. ``--snapshot``
writes the cluster as a snapshot for ``cpu-tiers plan``.
"""

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import MEMORY_MB, PCPU
from cpu_tiers.model.providers import Provider
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.planner import Plan, Question, make_plan
from cpu_tiers.tools.plan.read import read_cloud
from cpu_tiers.tools.room.server_queries import Request

CPUS = 16
"""The CPUs of the server for which free CPUs are useful."""

GOALS: Mapping[int, float] = {10: 0.471, 25: 0.320, 50: 0.201}
"""The part of the free CPUs that is useless after so many moves, of the cluster of 280 hosts."""

HOSTS_OF_GOALS, SECONDS = 280, 5.0
GAP = 0.03
"""How far the drawn cluster may be above its bound."""

FLAVOR = Flavor(
    name="16-cpus",
    vcpus=CPUS,
    memory_mb=CPUS * 2048,
    extra_specs={"hw:cpu_policy": "dedicated", "hw:numa_nodes": "1"},
)
_ROOM = Request((CandidateQuery((RequestGroup("_1", {PCPU: CPUS}),)),))

SIZES = ((2, 4), (4, 8), (4, 8), (4, 8), (8, 16), (8, 16), (16, 32), (32, 64))
"""The CPUs and GiB of drawn servers."""


def read_clusters(document: object, where: str) -> Snapshot:
    """Return the snapshot of a list of clusters.

    :raises InvalidInput: the document has another form.
    """
    providers: list[Provider] = []
    consumers: dict[str, dict[str, dict[str, int]]] = {}
    servers: dict[str, SnapshotServer] = {}
    groups: dict[str, ServerGroup] = {}
    try:
        for number, cluster in enumerate(cast(Any, document)):
            providers += _providers(number, cluster["hosts"])
            for index, (host, parts, may_move) in enumerate(cluster["servers"]):
                uuid = f"server-{number}-{index}"
                servers[uuid] = SnapshotServer(
                    name=uuid, state="ACTIVE", stays="" if may_move else "the data keep it"
                )
                consumers[uuid] = _allocations(f"host-{number}-{int(host)}", parts)
            for index, members in enumerate(cluster.get("apart") or ()):
                uuids = tuple(f"server-{number}-{int(member)}" for member in members)
                groups[f"apart-{number}-{index}"] = ServerGroup(
                    name=f"apart-{number}-{index}", policy="anti-affinity", members=uuids
                )
        known = {provider.uuid for provider in providers}
        if not known.issuperset(uuid for held in consumers.values() for uuid in held):
            raise ValueError("a server stands on a node that no host has")
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        allowed = "give a list of clusters with hosts, servers and apart"
        raise InvalidInput.of(where, f"no clusters ({error!r})", allowed) from error
    return Snapshot(
        providers=tuple(providers),
        consumers={uuid: held for uuid, held in consumers.items() if held},
        flavors=(FLAVOR,),
        servers=SnapshotServers(servers=servers, groups=groups),
    )


def _providers(cluster: int, hosts: Sequence[Any]) -> Iterator[Provider]:
    for number, nodes in enumerate(hosts):
        root = f"host-{cluster}-{number}"
        yield Provider(uuid=root, name=root)
        for node, (cpus, _, mib, _) in enumerate(nodes):
            name = f"{root}-node-{node}"
            amounts = {PCPU: int(cpus), MEMORY_MB: int(mib)}
            yield Provider(
                uuid=name,
                name=name,
                parent=root,
                inventories={
                    of: Inventory(total=amount, max_unit=amount)
                    for of, amount in amounts.items()
                    if amount > 0
                },
                traits=frozenset(["HW_NUMA_ROOT"]),
            )


def _allocations(host: str, parts: Sequence[Any]) -> dict[str, dict[str, int]]:
    held: dict[str, Counter[str]] = {}
    for node, cpus, mib in parts:
        amounts = {PCPU: int(cpus), MEMORY_MB: int(mib)}
        held.setdefault(f"{host}-node-{int(node)}", Counter()).update(
            {name: amount for name, amount in amounts.items() if amount > 0}
        )
    return {uuid: dict(amounts) for uuid, amounts in held.items() if amounts}


def drawn_clusters(hosts: int, seed: int) -> list[dict[str, Any]]:
    """Return a drawn cluster: two nodes of 44 CPUs a host, filled at random, servers ended."""
    rng = random.Random(seed)
    nodes = [[44, 44] for _ in range(hosts)]
    servers = []
    for _ in range(hosts * 30):
        cpus, gib = rng.choice(SIZES)
        host, node = rng.randrange(hosts), rng.randrange(2)
        if nodes[host][node] >= cpus:
            nodes[host][node] -= cpus
            servers.append([host, [[node, cpus, gib * 1024]], 1])
    kept = [server for server in servers if rng.random() < 0.85]
    size = [[44, 0, 184_388, 0]] * 2
    return [{"hosts": [size] * hosts, "servers": kept, "apart": []}]


def no_queries(flavor: Flavor, image: Image | None) -> Request:
    """Return no queries: the servers of a cluster request what they have."""
    return Request()


def part(count: int, free: int) -> float:
    """Return the part of the free CPUs that so many servers of 16 CPUs leave."""
    return 1 - CPUS * count / free if free else 0.0


def mended(snapshot: Snapshot, moves: int, seconds: float) -> tuple[Plan, float, float]:
    """Return a plan, the useless part of the free CPUs after it, and the bound of this part."""
    hosts = read_cloud(snapshot, no_queries)
    free = sum(max(0, n) for (_, name), n in hosts.room().amounts().items() if name == PCPU)
    question = Question(room=_ROOM, wanted=None, most_moves=moves)
    plan = make_plan(hosts, question, seconds=seconds)
    bound = plan.after if plan.bound is None else plan.bound
    return plan, part(plan.after, free), part(bound, free)


def main() -> int:
    """Print a line for each number of moves; return 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description="Mend the fragments of a cluster by migrations.")
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--moves", action="append", type=int)
    parser.add_argument("--seconds", type=float, default=4.5)
    parser.add_argument("--hosts", type=int, default=40, help="hosts of the drawn cluster")
    parser.add_argument("--snapshot", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    document = drawn_clusters(arguments.hosts, 1)
    if arguments.file:
        document = json.loads(arguments.file.read_text())
    snapshot = read_clusters(document, str(arguments.file or "the drawn cluster"))
    if arguments.snapshot:
        arguments.snapshot.write_text(json.dumps(snapshot.to_json()))
    hosts = sum(provider.parent is None for provider in snapshot.providers)
    missed = 0
    for moves in arguments.moves or GOALS:
        start = time.process_time()
        plan, useless, bound = mended(snapshot, moves, arguments.seconds)
        seconds = time.process_time() - start
        is_of_goals = hosts == HOSTS_OF_GOALS and moves in GOALS
        goal = GOALS[moves] if is_of_goals else bound + GAP
        # The goals have three digits.
        is_met = round(useless, 3) <= goal + 1e-9 and (not is_of_goals or seconds <= SECONDS)
        missed += not is_met
        print(
            f"{hosts} hosts, {moves} moves: {useless:.3f}, bound {bound:.3f}"
            f"{' (proven)' if plan.is_proven else ''}, {len(plan.steps)} steps,"
            f" {seconds:.1f} CPU seconds: {'met' if is_met else f'MISSED (goal {goal:.3f})'}"
        )
    return min(missed, 1)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except InvalidInput as error:
        sys.exit(str(error))
