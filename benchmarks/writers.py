"""Measure how often writers of a host succeed while servers are claimed on the same host.

A writer is a sync, a sync of Neutron's agents, a heal or a reshape to NUMA nodes. Each round has a
host of its own, with three servers. Each claim or release of a server makes a generation old that
the writer has read.

``--database sqlite`` takes a Placement inside the process. Time is simulated, so that a busy
machine does not change the result: each request of the writer takes as long as ``--latency``
says, a pause takes its time, and claims come at random in this time.

``--database mariadb`` and ``postgresql`` take a Placement in two processes, as ``tox -e
databases`` does. Time is real, and claims come from eight threads.
"""

import argparse
import random
import tempfile
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.accounting.relocation import ServersDoNotFit
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.networking.agent_tree import build_networking_trees
from cpu_tiers.tools.networking.network_agent import NetworkAgent
from cpu_tiers.tools.placement import allocations
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.conflicts import with_fresh_reads
from cpu_tiers.tools.placement.embedded import embedded_placement
from cpu_tiers.tools.placement.sync import read_host, sync
from cpu_tiers.tools.writers import numa_reshape
from cpu_tiers.tools.writers.networking_sync import sync_networking
from tests import driver_operations
from tests.databases import hosts
from tests.databases.keepers import shares_to_add
from tests.databases.servers import SERVERS, placement

RATES = (0.0, 2.5, 5.0, 10.0, 20.0, 50.0)
THREADS = 8
NODE_AMOUNTS = {"VCPU": 1, VCPU_SHARES: 100}
SERVER = {"VCPU": 1, "MEMORY_MB": 512}
SERVER_WITH_SHARES = {**SERVER, VCPU_SHARES: 100}
BANDWIDTH = {"NET_BW_EGR_KILOBIT_PER_SEC": 10, "NET_BW_IGR_KILOBIT_PER_SEC": 10}


def agent(host: str, reserved: int) -> NetworkAgent:
    """Return an agent of Open vSwitch with a bridge of 3000 kbps."""
    return NetworkAgent(
        host=host,
        agent_type="Open vSwitch agent",
        bandwidths={"br-0": {"egress": 3000, "ingress": 3000}},
        physical_networks={"br-0": "physnet0"},
        hypervisors={"br-0": host},
        bandwidth_options={"reserved": reserved},
    )


def sync_agent(client: PlacementClient, host: str, reserved: int) -> None:
    """Write the providers of the agent of a host."""
    (tree,) = build_networking_trees([agent(host, reserved)])
    sync_networking(client, tree)


def heal(client: PlacementClient, name: str) -> None:
    """Give the servers of a host their shares, as ``allocation heal`` does."""

    def attempt() -> None:
        host = read_host(client, name)
        assert host is not None
        if additions := shares_to_add(host):
            allocations.add(client, host, additions)

    with_fresh_reads(client.retry_policy, attempt)


def reshape(client: PlacementClient, name: str) -> None:
    """Move the servers of a host to NUMA nodes."""
    numa_reshape.reshape(client, hosts.tree(name, has_nodes=True), hosts.relocated_anywhere)


Place = dict[str, dict[str, int]]
Write = Callable[[PlacementClient, str], object]


@dataclass(frozen=True, kw_only=True)
class HostWriter:
    """A writer of a host.

    :param has_nodes: the host has NUMA nodes before.
    :param claims_shares: the servers that are claimed meanwhile have shares, as with
        ``query_placement_for_vcpu_shares``; the servers before have none.
    """

    name: str
    write: Write
    has_nodes: bool = False
    has_agent: bool = False
    claims_shares: bool = False


WRITERS = (
    HostWriter(name="sync", write=lambda c, h: sync(c, hosts.tree(h, has_nodes=False, turn=1))),
    HostWriter(
        name="sync with NUMA nodes",
        write=lambda c, h: sync(c, hosts.tree(h, has_nodes=True, turn=1)),
        has_nodes=True,
    ),
    HostWriter(
        name="networking sync", write=lambda c, h: sync_agent(c, h, reserved=100), has_agent=True
    ),
    HostWriter(name="heal", write=heal, claims_shares=True),
    HostWriter(name="heal of claimed servers", write=heal),
    HostWriter(name="reshape", write=reshape),
)


@dataclass
class Claimer:
    """Claims servers on a host and releases them.

    :param most: the number of servers that it holds before it releases the oldest.
    """

    client: PlacementClient
    places: Sequence[Place]
    most: int = THREADS
    held: deque[str] = field(default_factory=deque)
    steps: int = 0
    refused: int = 0

    def step(self) -> None:
        """Claim a server, or release the oldest."""
        self.steps += 1
        try:
            if len(self.held) >= self.most:
                driver_operations.delete(self.client, self.held.popleft())
            else:
                self.claim(str(uuid.uuid4()), random.choice(self.places))
        except CpuTiersError:
            self.refused += 1  # such as VCPU of a root that has NUMA nodes by now

    def claim(self, server: str, place: Place) -> None:
        """Claim a server."""
        request = AllocationRequest(allocations=place)
        allocations.claim(self.client, server, request, project_id="p", user_id="u")
        self.held.append(server)


def add_host(client: PlacementClient, writer: HostWriter, name: str) -> Claimer:
    """Add a host with three servers; return what claims more."""
    sync(client, hosts.tree(name, has_nodes=writer.has_nodes))
    providers = {name: client.find_provider(name)}
    if writer.has_nodes:
        providers = {
            node: client.find_provider(node) for node in (f"{name}_NUMA0", f"{name}_NUMA1")
        }
    uuids = [str(provider.uuid) for provider in providers.values() if provider]
    places = [{each: dict(NODE_AMOUNTS if writer.has_nodes else SERVER)} for each in uuids]
    if writer.has_agent:
        sync_agent(client, name, reserved=0)
        bridge = client.find_provider(f"{name}:Open vSwitch agent:br-0")
        assert bridge is not None
        places = [{**place, str(bridge.uuid): BANDWIDTH} for place in places]
    claimer = Claimer(client, places)
    for _ in range(3):
        claimer.claim(str(uuid.uuid4()), random.choice(places))
    if writer.claims_shares:
        claimer.places = [dict.fromkeys(place, SERVER_WITH_SHARES) for place in places]
    return claimer


class Traffic:
    """A transport that counts the requests of the writer and calls a function before each."""

    def __init__(self, transport: Any, before: Callable[[], None]) -> None:
        self.transport, self.before, self.requests = transport, before, 0

    def request(self, url: str, method: str, **kwargs: Any) -> Any:
        """Send a request."""
        self.requests += 1
        self.before()
        return self.transport.request(url, method, **kwargs)


class SimulatedCloud:
    """Claims come while the requests and pauses of the writer take simulated time."""

    def __init__(self, placement_client: PlacementClient, latency: float) -> None:
        self.client = placement_client
        self._latency = latency
        self._claimer: Claimer | None = None
        self._rate = self.seconds = 0.0
        transport = placement_client._exchange._transport
        self.traffic = Traffic(transport, lambda: self._pass(self._latency))
        # No attempt is one too late by the clock of the real time.
        policy = RetryPolicy(sleep=self._pass, seconds=3600)
        self.writer = PlacementClient(self.traffic, retry_policy=policy)

    def _pass(self, seconds: float) -> None:
        """Let time pass, with the claims that come in it."""
        self.seconds += seconds
        while self._claimer and self._rate:
            seconds -= random.expovariate(self._rate)
            if seconds < 0:
                return
            self._claimer.step()

    @contextmanager
    def claiming(self, claimer: Claimer, rate: float) -> Iterator[None]:
        """Claim at a rate in each second of simulated time."""
        self._claimer, self._rate = claimer, rate
        yield
        self._claimer = None


class RealCloud:
    """Claims come from threads, in real time."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.client = self._connect()
        self.traffic = Traffic(self._transport(), lambda: None)
        self.writer = PlacementClient(self.traffic)

    def _transport(self) -> Adapter:
        return Adapter(Session(auth=Token(self._url, "admin")), service_type="placement")

    def _connect(self) -> PlacementClient:
        return PlacementClient(self._transport())

    @property
    def seconds(self) -> float:
        """Return the time."""
        return time.monotonic()

    @contextmanager
    def claiming(self, claimer: Claimer, rate: float) -> Iterator[None]:
        """Claim at a rate in each second, if Placement is fast enough."""
        end = threading.Event()
        claimers = [
            Claimer(client=self._connect(), places=claimer.places, most=1) for _ in range(THREADS)
        ]

        def claim(each: Claimer) -> None:
            while not end.wait(random.expovariate(rate / THREADS)):
                each.step()

        threads = [threading.Thread(target=claim, args=[each]) for each in claimers if rate]
        for thread in threads:
            thread.start()
        yield
        end.set()
        for thread in threads:
            thread.join()
        claimer.steps = sum(each.steps for each in claimers)
        claimer.refused = sum(each.refused for each in claimers)


def measure(
    cloud: SimulatedCloud | RealCloud, writer: HostWriter, rate: float, rounds: int
) -> tuple[str, ...]:
    """Return a line of the table."""
    ends: Counter[str] = Counter()
    seconds = requests = steps = refused = 0.0
    for _ in range(rounds):
        name = f"host-{uuid.uuid4().hex[:8]}"
        claimer = add_host(cloud.client, writer, name)
        with cloud.claiming(claimer, rate):
            before, sent = cloud.seconds, cloud.traffic.requests
            try:
                writer.write(cloud.writer, name)
                ends["succeeded"] += 1
            except (CpuTiersError, ServersDoNotFit) as error:
                ends[type(error).__name__] += 1
            seconds += cloud.seconds - before
            requests += cloud.traffic.requests - sent
        steps += claimer.steps
        refused += claimer.refused
    said = ", ".join(f"{count} {end}" for end, count in ends.most_common())
    per_second = steps / seconds
    figures = (f"{rate:g}", f"{per_second:.1f}", said, f"{seconds / rounds:.2f}")
    return (writer.name, *figures, f"{requests / rounds:.1f}", f"{refused:.0f}/{steps:.0f}")


@contextmanager
def cloud_on(database: str, latency: float) -> Iterator[SimulatedCloud | RealCloud]:
    """Start a Placement over a database."""
    if database == "sqlite":
        with embedded_placement() as client:
            yield SimulatedCloud(client, latency)
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with (
            SERVERS[database](home, "placement") as url,
            placement(home, url, allocation_conflict_retry_count=1) as address,
        ):
            yield RealCloud(address)


def main() -> None:
    """Print a line for each writer and each rate of claims."""
    names = [writer.name for writer in WRITERS]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", choices=("sqlite", *SERVERS), default="sqlite")
    parser.add_argument("--latency", type=float, default=0.02, help="seconds of a request")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--writers", nargs="+", choices=names, default=names)
    parser.add_argument("--rates", nargs="+", type=float, default=RATES, help="per second")
    arguments = parser.parse_args()
    random.seed(1)
    print(
        "writer; claims and releases per second: asked, measured; ends; seconds; requests; refused"
    )
    with cloud_on(arguments.database, arguments.latency) as cloud:
        for writer in (each for each in WRITERS if each.name in arguments.writers):
            for rate in arguments.rates:
                print(*measure(cloud, writer, rate, arguments.rounds), sep="; ", flush=True)


if __name__ == "__main__":
    main()
