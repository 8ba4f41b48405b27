"""Which policy refuses Gold last: a cloud of tiers, and months of servers that come and go.

    python benchmarks/tiers.py [--seed N]… [--policy P]… [--requests N]

120 hosts are flat, and 80 hosts report two NUMA nodes with shared and dedicated CPUs. Bronze and
Silver servers go to flat hosts; Gold servers have a NUMA node and go to both; pinned and mixed
servers need hosts with nodes. A request comes every half an hour, and a server stays for 15
weeks on average. The cloud is full after about three of the 3.5 months.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from statistics import fmean

from simulate import inventory

from cpu_tiers.extra_specs.shares import MULTIPLIER, effective_shares
from cpu_tiers.inventory.cpus import ANCHOR
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import NUMA_SERVER, VCPU_SHARES
from cpu_tiers.model.numa import COUNT_TRAIT, NODE_TRAIT, page_traits
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.requests import Arrival, draw_arrivals
from cpu_tiers.tools.simulation.run import Demand, Outcome, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.translators import ServerRequest, fallback, translate

FLAT, NODES = 120, 80
STAY, REQUESTS = 5_000, 5_000
SHARES_OF_A_CPU = 50
RATIO = 2.0
TIERS = {"gold": "100", "silver": "50", "bronze": "25", "mixed": "100"}
NODE = {"hw:numa_nodes": "1"}
PINNED = {"hw:cpu_policy": "dedicated", **NODE}
SPECS: dict[str, tuple[int, float, dict[str, str]]] = {
    "bronze-2": (2, 20, {}),
    "bronze-4": (4, 20, {}),
    "bronze-8": (8, 12, {}),
    "silver-4": (4, 12, {}),
    "silver-8": (8, 8, {}),
    "silver-16": (16, 4, {}),
    "gold-8": (8, 10, NODE),
    "gold-16": (16, 5, NODE),
    "gold-32": (32, 2, NODE),
    "gold-24": (24, 2, {"hw:numa_nodes": "2"}),
    "pinned-4": (4, 3, PINNED),
    "pinned-8": (8, 1, PINNED),
    "mixed-8": (8, 2, {"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0-3", **NODE}),
}
"""By flavor: vCPUs, how often it is requested, and extra specs."""

POLICIES = (
    "nova",
    "nova,ram=-1,cpu=-1",
    "literal=10",
    "boring=10",
    "best-fit=10",
    "fragmentation=10",
    "fragmentation=100",
    "best-fit,ram=0,cpu=0,disk=0",
    "fragmentation,ram=0,cpu=0,disk=0",
)


def hosts() -> Iterator[CloudProvider]:
    """Yield hosts of 64 CPUs and 512 GiB: all CPUs shared, or 8 dedicated on each of two nodes."""
    for number in range(FLAT + NODES):
        name = f"host{number}"
        if number < FLAT:
            yield _provider(name, None, 64, memory_gib=512)
            continue
        yield _provider(name, None, 0, f"{COUNT_TRAIT}1", f"{COUNT_TRAIT}2", memory_gib=0)
        for node in range(2):
            of_node = f"{name}_NUMA{node}"
            yield _provider(of_node, name, 24, NODE_TRAIT, dedicated=8, memory_gib=0)
            traits = page_traits(4, smallest=True)
            yield _provider(f"{of_node}_PAGES_4", of_node, 0, *traits, memory_gib=256)


def _provider(
    name: str, parent: str | None, shared: int, *traits: str, memory_gib: int, dedicated: int = 0
) -> CloudProvider:
    amounts = {
        "VCPU": inventory(shared, RATIO),
        VCPU_SHARES: inventory(shared * SHARES_OF_A_CPU, RATIO),
        "PCPU": inventory(dedicated),
        "MEMORY_MB": inventory(memory_gib * 1024),
        "DISK_GB": inventory(0 if parent else 8_000),
        NUMA_SERVER: inventory(0) if parent or shared else ANCHOR,
    }
    return CloudProvider(
        uuid=name,
        name=name,
        parent=parent,
        inventories={name: of for name, of in amounts.items() if of.total},
        traits=frozenset(traits),
    )


def demands() -> dict[str, Demand]:
    """Return what servers of each flavor request."""
    found = {}
    for name, (vcpus, _, specs) in SPECS.items():
        tier = TIERS.get(name.partition("-")[0], "")
        flavor = Flavor(
            name=name,
            vcpus=vcpus,
            memory_mb=vcpus * 4096,
            root_gb=20,
            extra_specs={**specs, **({MULTIPLIER: tier} if tier else {})},
        )
        server = ServerRequest(flavor=flavor, query_vcpu_shares=True, query_numa=True)
        second = fallback(server)
        found[name] = Demand(
            Request(
                (translate(server), *((second,) if second else ())),
                weighed=translate(server._replace(query_numa=False)) if second else None,
            ),
            shares=effective_shares(flavor),
            tier=tier,
        )
    return found


def run(policy: str, seed: int, requests: int) -> tuple[Outcome, int | None]:
    """Return the outcome, and the number of the first Gold request that was refused."""
    rng = random.Random(seed)
    arrivals = draw_arrivals(requests, {name: s[1] for name, s in SPECS.items()}, STAY, rng)
    cloud = SimulatedCloud(hosts())
    scheduler = _Watched(cloud, Policy.parse(policy, WEIGHERS), rng)
    outcome = simulate(cloud, scheduler, arrivals, demands())
    assert all(outcome.taken.values()), "no host is made as the queries of some servers need it"
    return outcome, scheduler.first_gold(arrivals)


class _Watched(Scheduler):
    """Remembers the requests that were refused."""

    _requests = 0

    def __init__(self, cloud: SimulatedCloud, policy: Policy, ties: random.Random) -> None:
        super().__init__(cloud, policy, ties)
        self._refused: list[int] = []

    def choose(self, asked: Request):  # type: ignore[no-untyped-def]  # as of the base class
        """Return the choice."""
        choice = super().choose(asked)
        if choice is None:
            self._refused.append(self._requests)
        self._requests += 1
        return choice

    def first_gold(self, arrivals: Sequence[Arrival]) -> int | None:
        """Return the first Gold request that was refused."""
        gold = (n for n in self._refused if arrivals[n].flavor.startswith("gold"))
        return next(gold, None)


def refused(outcome: Outcome, kind: str) -> float:
    """Return the percentage of the requests of a kind that were refused."""
    taken = sum(n for name, n in outcome.taken.items() if name.startswith(kind))
    none = sum(n for name, n in outcome.refused.items() if name.startswith(kind))
    return 100 * none / (taken + none)


def spread(numbers: Sequence[float]) -> str:
    """Return the mean, and the least and the most."""
    return f"{fmean(numbers):.2f} ({min(numbers):.2f}-{max(numbers):.2f})"


def main() -> None:
    """Print a line for each policy."""
    parser = argparse.ArgumentParser(description="Which policy refuses Gold last.")
    parser.add_argument("--seed", action="append", type=int)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--requests", type=int, default=REQUESTS)
    options = parser.parse_args()
    for policy in options.policy or POLICIES:
        runs = []
        for seed in options.seed or (1, 2, 3):
            runs.append(run(policy, seed, options.requests))
            print(f"{policy}, seed {seed}: {describe(runs[-1:])}", flush=True)
        print(f"{policy}: {describe(runs)}", flush=True)


def describe(runs: Sequence[tuple[Outcome, int | None]]) -> str:
    """Return the figures of runs with several seeds."""
    first = [number for _, number in runs if number is not None]
    kinds = {
        kind: spread([refused(outcome, kind) for outcome, _ in runs])
        for kind in ("gold", "silver", "bronze", "pinned", "mixed", "")
    }
    texts = ", ".join(f"{kind or 'all'} {text}" for kind, text in kinds.items())
    gold = [outcome.floors["100"] for outcome, _ in runs]
    kept, servers = sum(of.entitlement_kept for of in gold), sum(of.servers for of in gold)
    return (
        f"first Gold refused {spread(first) if first else 'never'}; refused in %: {texts};"
        f" least floor of Gold {min(of.least_floor for of in gold):.2f},"
        f" entitlement kept {kept}/{servers}"
    )


if __name__ == "__main__":
    main()
