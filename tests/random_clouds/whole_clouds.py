"""Draws whole clouds of many kinds of hosts, as snapshots; shares no code with the commands."""

import random
import uuid
from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]
NO_SPECS: Mapping[str, str] = {}
SHARES, DISABLED = "MISC_SHARES_VIA_AGGREGATE", "COMPUTE_STATUS_DISABLED"
BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC"
LIMITS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")


def identity(rng: random.Random) -> str:
    """Return a uuid."""
    return str(uuid.UUID(int=rng.getrandbits(128), version=4))


def provider(name: str, parent: Json | None = None, *traits: str, **totals: int) -> Json:
    """Return a provider of a snapshot, with inventories that have no limits."""
    return {
        "uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, name)),
        "name": name,
        "parent_uuid": parent and parent["uuid"],
        "inventories": {
            name: dict(zip(LIMITS, (total, 0, 1, total, 1, 1.0), strict=True))
            for name, total in totals.items()
            if total
        },
        "traits": list(traits),
        "aggregates": [],
    }


def numa_host(name: str, nodes: int, memory_mb: int, **cpus: int) -> list[Json]:
    """Return the providers of a host with NUMA nodes, as nova-compute reports them.

    :param memory_mb: of each node.
    :param cpus: the amounts of each node.
    """
    traits = [f"CUSTOM_NUMA_NODES_{number + 1}" for number in range(nodes)]
    providers = [provider(name, None, *traits, CUSTOM_NUMA_SERVER=10_000, DISK_GB=40)]
    providers[0]["inventories"]["CUSTOM_NUMA_SERVER"]["max_unit"] = 1
    for number in range(nodes):
        node = provider(f"{name}_NUMA{number}", providers[0], "HW_NUMA_ROOT", **cpus)
        small = "CUSTOM_MEMORY_PAGE_SIZE_SMALL"
        providers += [node, provider(f"{node['name']}_4", node, small, MEMORY_MB=memory_mb)]
    return providers


def new_flavor(
    name: str, vcpus: int, memory_mb: int, root_gb: int = 0, *, specs: Mapping[str, str] = NO_SPECS
) -> Json:
    """Return a flavor of a snapshot, of a tier of its own."""
    tier = {"quota:cpu_shares_multiplier": str(70 + 10 * int(name[1:]))}
    sizes = {"root_gb": root_gb, "ephemeral_gb": 0, "swap_mb": 0}
    sizes |= {"vcpus": vcpus, "memory_mb": memory_mb}
    return {"name": name, **sizes, "extra_specs": {**tier, **specs}}


def new_cloud(providers: list[Json], *flavors: Json) -> Json:
    """Return a cloud without servers, of which all hosts are up."""
    return {
        "format": "cpu-tiers cloud snapshot",
        "version": 2,
        "masked": False,
        "providers": providers,
        "consumers": {},
        "flavors": list(flavors),
        "servers": {},
        "server_flavors": list(flavors),
        "groups": {},
        "services": {each["uuid"]: each["name"] for each in hosts_of(providers)},
        "down": [],
    }


def hosts_of(providers: list[Json]) -> list[Json]:
    """Return the root providers that are no pools."""
    return [p for p in providers if p["parent_uuid"] is None and not p["name"].startswith("pool")]


def draw_cloud(rng: random.Random) -> Json:
    """Return a cloud of some hosts and pools without servers."""
    aggregates = [identity(rng) for _ in range(2)]
    has_numa, has_names = rng.random() < 0.5, rng.random() < 0.8
    # Placement tries all combinations: 4,096 for a guest of 3 nodes on 4.
    on, most = rng.choice([(4, 2), (3, 3)])
    providers, states, has_groups = list[Json](), dict[str, str](), True
    for number in range(rng.choice([1, 2, 2, 3, 4])):
        is_numa = has_numa and rng.random() < 0.8
        root, *others = _numa(rng, f"cn{number}", on) if is_numa else _flat(rng, f"cn{number}")
        # Without the trait of nova-compute, nobody knows which hosts are removed or down.
        states[root["uuid"]] = state = rng.choice(
            ["up"] * 12 + ["disabled", *(["down", "removed"] if has_names else [])]
        )
        if number == 0 and state == "up" and not others and rng.random() < 0.15:
            root["traits"] += [SHARES]  # its CPUs, too
            has_groups = False
        root["traits"] += ["COMPUTE_NODE"] * has_names + [DISABLED] * (state == "disabled")
        root["traits"] += ["CUSTOM_RED"] * (rng.random() < 0.5)
        providers += [root, *others]
        for card in range(rng.choice([0, 0, 1, 2])):
            providers.append(provider(f"cn{number}-card{card}", root, CUSTOM_CARD=1 + 2 * card))
        if rng.random() < 0.4:
            bridge = "CUSTOM_PHYSNET_FAST", {BANDWIDTH: 1000}
            providers.append(provider(f"cn{number}-br", root, bridge[0], **bridge[1]))
    for number in range(rng.choice([0, 0, 1, 2, 3])):
        providers.append(provider(f"pool{number}", None, SHARES, DISK_GB=rng.choice([10, 20, 45])))
    for each in providers:
        if each["parent_uuid"] is None:
            each["aggregates"] = [name for name in aggregates if rng.random() < 0.6]
        for name, limits in each["inventories"].items():
            if name != "CUSTOM_NUMA_SERVER":
                _limit(rng, limits)
    cloud = new_cloud(
        providers, *(_flavor(rng, f"f{n}", most * has_numa, has_groups) for n in range(2))
    )
    cloud["services"] = {u: n for u, n in cloud["services"].items() if states[u] != "removed"}
    return {**cloud, "down": [host for host, state in states.items() if state == "down"]}


def _numa(rng: random.Random, name: str, most: int) -> list[Json]:
    cpus, dedicated = rng.choice([2, 4, 4, 6]), rng.choice([0, 0, 2])
    amounts = {"VCPU": cpus, "PCPU": dedicated, "CUSTOM_VCPU_SHARES": 100 * cpus}
    return numa_host(name, rng.randint(2, most), rng.choice([1024, 2048]), **amounts)


def _flat(rng: random.Random, name: str) -> list[Json]:
    kind = rng.choice(["CPUs"] * 8 + ["metal", "memory", "disk", "shares"])
    odd = {"metal": {"CUSTOM_METAL": 1}, "memory": {"MEMORY_MB": 4096}}
    odd |= {"disk": {"DISK_GB": 40}, "shares": {"DISK_GB": 40}}
    cpus, memory = rng.choice([4, 8, 12]), rng.choice([2048, 8192])
    amounts = {"VCPU": cpus, "MEMORY_MB": memory, "CUSTOM_VCPU_SHARES": 100 * cpus}
    amounts |= {"PCPU": rng.choice([0, 0, 4]), "DISK_GB": rng.choice([0, 20, 40])}
    return [provider(name, None, *[SHARES] * (kind == "shares"), **odd.get(kind, amounts))]


def _limit(rng: random.Random, limits: Json) -> None:
    """Give an inventory another limit, sometimes."""
    total = limits["total"]
    if total > 1 and rng.random() < 0.08:
        limits |= rng.choice(
            [
                {"reserved": rng.randint(0, total // 2)},
                {"allocation_ratio": rng.choice([0.9, 1.5, 2.0])},
                {"min_unit": 2},
                {"step_size": rng.choice([2, 3])},
                {"max_unit": max(1, total // 2)},
            ]
        )


def _flavor(rng: random.Random, name: str, most_nodes: int, has_groups: bool) -> Json:
    """Return a flavor.

    :param has_groups: whether it may have groups of its own: Placement has a fault beside hosts
        that share their CPUs (``docs/contributor/upstream/shared-disk.rst``).
    """
    nodes, each = rng.choice([1, 2, 2, 3]), rng.choice([1, 1, 2])
    nodes = min(nodes, most_nodes)
    size = (
        (nodes or 1) * each,
        (nodes or 1) * rng.choice([128, 256, 512]),
        rng.choice([0, 0, 2, 5]),
    )
    specs = {"hw:numa_nodes": str(nodes)} if nodes else {}
    if nodes == 2 and rng.random() < 0.3:  # nodes of different sizes: their order matters
        size = size[0] + 1, *size[1:]
        specs |= {"hw:numa_cpus.0": f"0-{each - 1}", "hw:numa_cpus.1": f"{each}-{2 * each}"}
        specs |= {f"hw:numa_mem.{node}": str(size[1] // 2) for node in range(2)}
    if rng.random() < 0.2:
        specs["hw:cpu_policy"] = "dedicated"
    if rng.random() < 0.15:
        specs["trait:CUSTOM_RED"] = rng.choice(["required", "forbidden"])
    if rng.random() < 0.2 and has_groups:
        specs["resources1:CUSTOM_CARD"] = "1"
    elif rng.random() < 0.2 and has_groups:
        specs |= {f"resources1:{BANDWIDTH}": "300", "trait1:CUSTOM_PHYSNET_FAST": "required"}
    if rng.random() < 0.05:
        specs = dict.fromkeys((f"resources:{n}" for n in ("VCPU", "MEMORY_MB", "DISK_GB")), "0")
        specs["resources:CUSTOM_METAL"] = "1"
    return new_flavor(name, *size, specs=specs)
