"""Measure how often a sync succeeds while servers are claimed on the same host.

Time is simulated, so that a busy machine does not change the result. Each request of the sync
takes as long as ``--latency`` says, and a pause takes its time. Claims come at random in this
time, on a NUMA node at random, and are written to a real Placement inside the process. Each claim
makes the generation old that the sync has read.
"""

import argparse
import random
from dataclasses import replace
from typing import Any

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.http.retries import RetryPolicy
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.embedded import embedded_placement
from cpu_tiers.placement.errors import GenerationConflict
from cpu_tiers.placement.records import Consumer
from cpu_tiers.placement.sync import sync

RATES = (0.0, 2.5, 5.0, 10.0, 20.0, 50.0)
SERVER = "5a2d0dd5-9d0e-4f2c-8f5b-0d6a2f9a1a11"


def host(nodes: int, vcpus: int) -> ProviderTree:
    """Return a host with so many NUMA nodes, or without, and so many VCPU in each place."""
    inventories = {"VCPU": Inventory(total=vcpus, max_unit=vcpus)}
    root = ResourceProvider(name="one", inventories={} if nodes else inventories)
    children = (
        ResourceProvider(name=f"one_NUMA{node}", parent="one", inventories=inventories)
        for node in range(nodes)
    )
    return ProviderTree(providers=(root, *children), managed_classes=frozenset({"VCPU"}))


class Claims:
    """A transport that lets claims happen while the requests of the sync are on their way."""

    def __init__(self, transport: Any, claimer: PlacementClient, latency: float) -> None:
        self.transport, self.claimer, self.latency = transport, claimer, latency
        self.rate = self.seconds = 0.0
        self.uuids: list[str] = []
        self.requests = 0

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Claim, if a claim comes in the time until the request arrives; then send it."""
        self.requests += 1
        self.pass_time(self.latency)
        return self.transport.request(url, method, **kwargs)

    def pass_time(self, seconds: float) -> None:
        """Let time pass; several claims in this time are one, as they have the same effect."""
        self.seconds += seconds
        if self.rate and random.expovariate(self.rate) < seconds:
            present = self.claimer.consumer(SERVER)
            amounts = {random.choice(self.uuids): {"VCPU": random.choice((1, 2))}}
            claimed = replace(
                present, allocations=Portion.by_id(amounts), project_id="p", user_id="u"
            )
            self.claimer.set_consumers(claimed)


def measure(claims: Claims, client: PlacementClient, nodes: int, rounds: int) -> tuple[int, float]:
    """Return how many syncs succeeded, and the mean of their simulated seconds."""
    succeeded = 0
    claims.seconds = 0.0
    for number in range(rounds):
        try:
            sync(client, host(nodes, 8 + number % 2))
        except GenerationConflict:
            continue
        succeeded += 1
    return succeeded, claims.seconds / rounds


def main() -> None:
    """Print a line for each kind of host and each rate of claims."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.02, help="seconds of a request")
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    random.seed(1)
    print("NUMA nodes, claims per second, syncs that succeeded, seconds, requests of a sync")
    for nodes in (0, 2):
        with embedded_placement() as claimer:
            claims = Claims(claimer._exchange._transport, claimer, arguments.latency)
            client = PlacementClient(claims, retry_policy=RetryPolicy(sleep=claims.pass_time))
            sync(client, host(nodes, 8))
            names = [p.name for p in host(nodes, 8).providers if p.inventories]
            providers = [claimer.find_provider(name) for name in names]
            claims.uuids = [provider.uuid for provider in providers if provider]
            claimer.set_consumers(
                Consumer(
                    uuid=SERVER,
                    allocations=Portion.by_id({claims.uuids[0]: {"VCPU": 1}}),
                    project_id="p",
                    user_id="u",
                )
            )
            sync(client, host(nodes, 9))
            for rate in RATES:
                claims.rate, claims.requests = rate, 0
                succeeded, seconds = measure(claims, client, nodes, arguments.rounds)
                requests = claims.requests / arguments.rounds
                print(
                    f"{nodes} {rate:g} {succeeded}/{arguments.rounds} {seconds:.2f} {requests:.0f}"
                )


if __name__ == "__main__":
    main()
