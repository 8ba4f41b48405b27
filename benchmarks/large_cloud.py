"""Write the snapshot of a large cloud: hosts, servers of three tiers, and their flavors.

Servers come in a random order, each to a random host that has room for the server, until half
of all VCPUs are taken. Run: ``python benchmarks/large_cloud.py FILE [--hosts N]
[--nodes N]``. Pure, except for the file.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from cpu_tiers.model.names import NUMA_SERVER, VCPU_SHARES

TIERS = {"gold": 100, "silver": 50, "bronze": 10}
"""The shares of a VCPU of each tier."""

SIZES = (2, 16, 32)
"""The VCPUs of the flavors of each tier."""

VCPUS, SHARES, MEMORY_MB, DISK_GB = 64, 4096, 131_072, 4_000
"""What a node has, and the disk of a host."""

SOLD = 0.5

Allocations = dict[str, dict[str, int]]


def large_cloud(hosts: int, nodes: int, seed: int = 0) -> dict[str, Any]:
    """Return the document of a snapshot.

    :param nodes: the NUMA nodes of each host, each with a provider of its memory; 0 for hosts of
        one provider.
    """
    draw = random.Random(seed)
    uuids = (str(UUID(int=draw.getrandbits(128), version=4)) for _ in iter(int, 1))
    trees = [list(_tree(f"host-{number:05}", nodes, uuids)) for number in range(hosts)]
    return {
        "format": "cpu-tiers cloud snapshot",
        "version": 1,
        "masked": False,
        "providers": [provider for tree in trees for provider in tree],
        "consumers": _consumers(trees, nodes, draw, uuids),
        "flavors": _flavors(SIZES, {"hw:numa_nodes": "1"} if nodes else {}),
    }


def full_cloud(hosts: int, seed: int = 0) -> dict[str, Any]:
    """Return the document of full hosts with 37 servers each, and a tenth as many empty hosts.

    A server has one or two of the 64 VCPUs of its host, and boots from a volume.
    """
    draw, document = random.Random(seed), large_cloud(0, 0)
    uuids = (str(UUID(int=draw.getrandbits(128), version=4)) for _ in iter(int, 1))
    trees = [list(_tree(f"host-{n:05}", 0, uuids)) for n in range(hosts + hosts // 10)]
    flavors = _flavors((1, 2, 4))
    numbers = {flavor["name"]: number for number, flavor in enumerate(flavors)}
    servers = {}
    for (host,) in trees[:hosts]:
        sizes = [2] * 27 + [1] * 10
        draw.shuffle(sizes)
        for vcpus in sizes:
            tier, server = draw.choice([*TIERS]), next(uuids)
            servers[server] = {
                "name": f"server-{server[:8]}",
                "flavor": numbers[f"{tier}.{vcpus}"],
                "state": "ACTIVE",
                "host": host["name"],
                "project": f"project-{draw.randrange(50)}",
                "volume": True,
            }
            held = {"VCPU": vcpus, VCPU_SHARES: vcpus * TIERS[tier], "MEMORY_MB": 2048 * vcpus}
            document["consumers"][server] = {host["uuid"]: held}
    return {
        **document,
        "version": 3,
        "providers": [host for (host,) in trees],
        "flavors": flavors,
        "servers": servers,
        "server_flavors": flavors,
        "services": {host["uuid"]: host["name"] for (host,) in trees},
        **{name: {} for name in ("groups", "migrations", "host_aggregates", "types")},
        **{name: [] for name in ("server_images", "down", "unread")},
    }


def _flavors(sizes: Sequence[int], specs: Mapping[str, str] = {}) -> list[dict[str, Any]]:
    """Return a flavor of each tier and size, with further extra specs."""
    return [
        {
            "name": f"{tier}.{vcpus}",
            "vcpus": vcpus,
            "memory_mb": 2048 * vcpus,
            "root_gb": 20,
            "extra_specs": {"quota:cpu_shares_multiplier": str(weight), **specs},
        }
        for tier, weight in TIERS.items()
        for vcpus in sizes
    ]


def cloud_of_pools(hosts: int, pools: int, seed: int = 0) -> dict[str, Any]:
    """Return the document of hosts without disks, and pools of disks in their aggregate.

    Each pool has a use of its own.
    """
    draw = random.Random(seed)
    uuids = (str(UUID(int=draw.getrandbits(128), version=4)) for _ in iter(int, 1))
    document, aggregate = large_cloud(0, 0), next(uuids)
    for name, count, traits, totals in (
        ("host", hosts, [], {"VCPU": 16, "MEMORY_MB": 65_536}),
        ("pool", pools, ["MISC_SHARES_VIA_AGGREGATE"], {"DISK_GB": 1_000}),
    ):
        for number in range(count):
            provider = _provider(next(uuids), f"{name}-{number}", None, traits)
            provider |= {"inventories": _inventories(totals), "aggregates": [aggregate]}
            document["providers"].append(provider)
            if "DISK_GB" in totals:
                use = {"DISK_GB": draw.randint(1, 1_000)}
                document["consumers"][next(uuids)] = {provider["uuid"]: use}
    flavor = {"name": "pooled", "vcpus": 1, "memory_mb": 1024, "root_gb": 10}
    return {**document, "flavors": [{**flavor, "extra_specs": {}}]}


def _tree(host: str, nodes: int, uuids: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Yield the providers of a host: the root, and for each node the CPUs and the memory."""
    count = max(nodes, 1)
    cpus = {"VCPU": VCPUS * count, VCPU_SHARES: SHARES * count}
    memory = {"MEMORY_MB": MEMORY_MB * count}
    traits = ["COMPUTE_NODE", *(f"CUSTOM_NUMA_NODES_{n}" for n in range(1, nodes + 1))]
    root = _provider(next(uuids), host, None, traits)
    root["inventories"] = _inventories(
        {"DISK_GB": DISK_GB} | ({NUMA_SERVER: VCPUS * count} if nodes else cpus | memory)
    )
    yield root
    for node in range(nodes):
        name = f"{host}_NUMA{node}"
        of_node = _provider(next(uuids), name, root["uuid"], ["HW_NUMA_ROOT"])
        of_node["inventories"] = _inventories({"VCPU": VCPUS, VCPU_SHARES: SHARES})
        yield of_node
        traits = ["CUSTOM_MEMORY_PAGE_SIZE_SMALL", "CUSTOM_MEMORY_PAGE_SIZE_4"]
        pages = _provider(next(uuids), f"{name}_PAGES_4", of_node["uuid"], traits)
        pages["inventories"] = _inventories({"MEMORY_MB": MEMORY_MB})
        yield pages


def _provider(uuid: str, name: str, parent: str | None, traits: list[str]) -> dict[str, Any]:
    return {
        "uuid": uuid,
        "name": name,
        "parent_uuid": parent,
        "traits": traits,
        "aggregates": [],
        "inventories": {},
    }


def _inventories(totals: Mapping[str, int]) -> dict[str, Any]:
    return {
        name: {
            "total": total,
            "reserved": 0,
            "min_unit": 1,
            "max_unit": total,
            "step_size": 1,
            "allocation_ratio": 1.0,
        }
        for name, total in totals.items()
    }


def _consumers(
    trees: list[list[dict[str, Any]]], nodes: int, draw: random.Random, uuids: Iterator[str]
) -> dict[str, Allocations]:
    """Return the allocations of servers, each on one node of a random host."""
    free = {
        provider["uuid"]: {name: of["total"] for name, of in provider["inventories"].items()}
        for tree in trees
        for provider in tree
    }
    left = int(len(trees) * max(nodes, 1) * VCPUS * SOLD)
    consumers = {}
    while left > 0:
        tree, node = draw.choice(trees), draw.randrange(max(nodes, 1))
        (_, weight), vcpus = draw.choice([*TIERS.items()]), draw.choice(SIZES)
        parts = {"VCPU": vcpus, VCPU_SHARES: vcpus * weight}
        cpus, memory = tree[1 + 2 * node : 3 + 2 * node] if nodes else (tree[0], tree[0])
        allocations: Allocations = {}
        for provider, amounts in (
            (tree[0], {"DISK_GB": 20}),
            (cpus, parts),
            (memory, {"MEMORY_MB": 2048 * vcpus}),
        ):
            allocations.setdefault(provider["uuid"], {}).update(amounts)
        if all(free[uuid][n] >= a for uuid, of in allocations.items() for n, a in of.items()):
            for uuid, amounts in allocations.items():
                for name, amount in amounts.items():
                    free[uuid][name] -= amount
            consumers[next(uuids)] = allocations
            left -= vcpus
    return consumers


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write the snapshot of a large cloud.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    document = large_cloud(given.hosts, given.nodes, given.seed)
    given.file.write_text(json.dumps(document, separators=(",", ":")))
    print(f"{len(document['providers'])} providers, {len(document['consumers'])} consumers")


if __name__ == "__main__":
    main()
