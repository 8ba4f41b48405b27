"""CPU seconds of a simulation: 1,523 hosts and 10,000 requests under one policy.

``python benchmarks/simulate.py HOSTS REQUESTS POLICY`` measures other sizes. A third of the hosts
has two or eight cards of their own providers; a sixteenth of the requests is for cards.
"""

import random
import sys
import time

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud_model import CloudProvider
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.requests import draw_arrivals
from cpu_tiers.tools.simulation.run import Demand, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.translators import ServerRequest, translate

GOAL_SECONDS = 60
TIERS = {"gold": "100", "silver": "25", "bronze": "5"}
CARDS = {
    "resources1:VGPU": "1",
    "resources2:VGPU": "1",
    "group_policy": "isolate",
}


def inventory(total: int, ratio: float = 1.0) -> Inventory:
    """Return an inventory of which a server may take all."""
    return Inventory(total=total, max_unit=total, allocation_ratio=ratio)


def hosts(count: int, rng: random.Random) -> list[CloudProvider]:
    """Return hosts of three sizes, with 30 traits each."""
    states = []
    for number in range(count):
        cpus = rng.choice([64, 96, 128])
        name = f"host{number}"
        inventories = {
            "VCPU": inventory(cpus, 4.0),
            "MEMORY_MB": inventory(cpus * 8192),
            "DISK_GB": inventory(4000),
            "CUSTOM_VCPU_SHARES": inventory(cpus * 100),
        }
        traits = frozenset(f"CUSTOM_TRAIT_{n}" for n in range(30))
        states.append(CloudProvider(uuid=name, name=name, inventories=inventories, traits=traits))
        for card in range(rng.choice([0, 0, 0, 0, 2, 8])):
            uuid = f"{name}_{card}"
            states.append(
                CloudProvider(
                    uuid=uuid, name=uuid, parent=name, inventories={"VGPU": inventory(1)}
                )
            )
    return states


def demands() -> dict[str, Demand]:
    """Return thirty flavors of three tiers, and two flavors with cards."""
    specs = [
        (f"{tier}-{vcpus}-{gib}", vcpus, gib, {"quota:cpu_shares_multiplier": multiplier})
        for tier, multiplier in TIERS.items()
        for vcpus in (1, 2, 4, 8, 16)
        for gib in (2, 4)
    ]
    specs += [("card", 4, 4, {"resources1:VGPU": "1"}), ("cards", 4, 4, CARDS)]
    flavors = [
        Flavor(name=name, vcpus=vcpus, memory_mb=vcpus * gib * 1024, root_gb=20, extra_specs=spec)
        for name, vcpus, gib, spec in specs
    ]
    return {
        flavor.name: Demand(
            Request((translate(ServerRequest(flavor=flavor, query_vcpu_shares=True)),))
        )
        for flavor in flavors
    }


def main(count: int, requests: int, policy: str) -> int:
    """Measure once; the CPU time of the process does not depend on what else runs."""
    rng = random.Random(1)
    snapshot = Snapshot(providers=tuple(hosts(count, rng)), consumers={})
    of_flavors = demands()
    arrivals = draw_arrivals(requests, dict.fromkeys(of_flavors, 1.0), requests / 2, rng)
    start = time.process_time()
    cloud = snapshot.cloud()
    scheduler = Scheduler(cloud, Policy.parse(policy, WEIGHERS))
    outcome = simulate(cloud, scheduler, arrivals, of_flavors)
    seconds = time.process_time() - start
    taken = sum(outcome.taken.values())
    print(
        f"{policy}: {count} hosts, {requests} requests, {taken} taken: {seconds:.1f} CPU seconds"
    )
    return int(seconds > GOAL_SECONDS)


if __name__ == "__main__":
    given = dict(enumerate(sys.argv[1:]))
    sys.exit(main(int(given.get(0, "1523")), int(given.get(1, "10000")), given.get(2, "boring")))
