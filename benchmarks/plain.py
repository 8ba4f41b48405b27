"""A plain cloud: equal hosts, 15 flavors, no tiers, no devices, and servers that come and go.

    python benchmarks/plain.py [--small] [--cpus N] [--hosts N]… [--seed N]… [--policy P]…
                               [--lifetimes PREDICTION | --moves N]

A host has 64 CPUs, or ``--cpus``, and 4 GiB for each CPU.

Prints the hosts that are empty, on average over the second half of the time, and the refused part
of the core-hours. Each project uses some flavors, and a flavor of a project has its own lifetime:
the lifetimes of its servers differ from this lifetime by a factor of e on average.

With ``--small``, most servers are small, as in public clouds: 9 of 10 have 1 to 4 vCPUs.

With ``--lifetimes``, ``best-fit`` alone first takes the hosts that would become empty hardly later
with the server, after the lifetime that is predicted: ``exact``, ``off`` by a factor of e on
average, or ``before``, the mean of the earlier servers of the same flavor and project that have
ended.

With ``--moves N``, a server without a host gets a plan of at most N migrations (``cpu-tiers plan
room``, by its search alone), which are carried out. Goals: at most 5.2 % refused with 44 hosts,
0.9 % with 50.
"""

import argparse
import heapq
import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean
from typing import NamedTuple

from simulate import inventory

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.plan.hosts import Hosts
from cpu_tiers.tools.plan.hosts import Server as PlanServer
from cpu_tiers.tools.plan.planner import Question, make_plan
from cpu_tiers.tools.room.free import Amounts, amounts_of
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.requests import Arrival
from cpu_tiers.tools.simulation.run import Demand, Outcome, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler, Scores
from cpu_tiers.translators import ServerRequest, translate

CPUS, MEMORY_GIB = 64, 4
"""The CPUs of a host, and its GiB of memory for each CPU."""
REQUESTS, PROJECTS = 6_000, 40
CORES = 2_400
"""The CPUs of servers that would run at a time on average, if no request were refused."""

SIZES = [(1, 2), (1, 4), (2, 2), (2, 4), (2, 8), (4, 2), (4, 4), (4, 8), (8, 2), (8, 4)]
SIZES += [(8, 8), (16, 2), (16, 4), (16, 8), (32, 4)]
"""The vCPUs of each flavor, and its GiB of memory for each vCPU."""

SMALL = {1: 40, 2: 30, 4: 20, 8: 7, 16: 2, 32: 1}
"""With ``--small``, the percentage of the servers by their vCPUs."""

ALONE = ",ram=0,cpu=0,disk=0"
POLICIES = (
    "nova",
    "nova,ram=-1,cpu=-1,disk=-1",
    "boring=10",
    "best-fit=10",
    "fragmentation=10",
    "best-fit=100",
    "fragmentation=100",
    f"best-fit{ALONE}",
    f"fragmentation{ALONE}",
)
HOUR, MOST_HOURS = 1.0, 30 * 24.0


class Server(NamedTuple):
    """A request: its arrival, its project, and how far an uncertain prediction is off."""

    arrival: Arrival
    project: int
    error: float

    @property
    def lifetime(self) -> float:
        """Return the hours that the server stays."""
        return self.arrival.lifetime or 0.0


def flavors() -> dict[str, Flavor]:
    """Return the flavors by name."""
    found = {}
    for vcpus, gib in SIZES:
        name = f"{vcpus}x{gib}"
        found[name] = Flavor(name=name, vcpus=vcpus, memory_mb=vcpus * gib * 1024, root_gb=20)
    return found


def servers(rng: random.Random, *, are_small: bool) -> list[Server]:
    """Return the requests in the order of time, which is in hours."""
    of_cloud = flavors()
    names = [_flavors_of_project(rng, list(of_cloud), are_small) for _ in range(PROJECTS)]
    usual = [[math.exp(rng.uniform(0, math.log(MOST_HOURS))) for _ in range(4)] for _ in names]
    activity = [rng.expovariate(1) for _ in names]
    drawn = []
    for _ in range(REQUESTS):
        (project,) = rng.choices(range(PROJECTS), weights=activity)
        number = rng.randrange(4)
        hours = min(MOST_HOURS, usual[project][number] * math.exp(rng.gauss(0, 1)))
        drawn.append((names[project][number], hours, project, math.exp(rng.gauss(0, 1))))
    core_hours = sum(of_cloud[name].vcpus * hours for name, hours, _, _ in drawn)
    times = sorted(rng.uniform(0, core_hours / CORES) for _ in drawn)
    return [
        Server(Arrival(time=time, flavor=name, lifetime=hours), project, error)
        for time, (name, hours, project, error) in zip(times, drawn, strict=True)
    ]


def _flavors_of_project(rng: random.Random, names: list[str], are_small: bool) -> list[str]:
    """Return four flavors; of mostly small servers, a project may have a flavor several times."""
    if not are_small:
        return rng.sample(names, 4)
    sizes = Counter(vcpus for vcpus, _ in SIZES)
    return rng.choices(names, [SMALL[vcpus] / sizes[vcpus] for vcpus, _ in SIZES], k=4)


class Before:
    """The lifetimes that servers of the same flavor and project had before."""

    def __init__(self, stream: Sequence[Server]) -> None:
        self._ends = sorted(stream, key=lambda server: server.arrival.time + server.lifetime)
        self._seen = 0
        self._logs: defaultdict[tuple[str, int], list[float]] = defaultdict(list)

    def __call__(self, server: Server) -> float:
        """Return the mean of the lifetimes, a day without any."""
        while (
            ended := self._ends[self._seen]
        ).arrival.time + ended.lifetime <= server.arrival.time:
            key = ended.arrival.flavor, ended.project
            self._logs[key].append(math.log(max(ended.lifetime, HOUR / 60)))
            self._seen += 1
        logs = self._logs[server.arrival.flavor, server.project]
        return math.exp(fmean(logs)) if logs else 24.0


def predictions(stream: Sequence[Server]) -> dict[str, Callable[[Server], float]]:
    """Return the ways to predict the lifetime of a server."""
    return {
        "exact": lambda server: server.lifetime,
        "off": lambda server: server.lifetime * server.error,
        "before": Before(stream),
    }


class _WithLifetimes(Scheduler):
    """Takes the hosts that become empty hardly later, and chooses among them by the policy.

    A host becomes empty when its last server is predicted to end. A server that outlives its
    prediction is predicted to live as long again. The additional hours are compared by their
    powers of 2.
    """

    _stream: Sequence[Server]
    _predict: Callable[[Server], float]

    def watch(self, stream: Sequence[Server], predict: Callable[[Server], float]) -> None:
        """Take the requests and the way to predict their lifetimes."""
        self._stream, self._predict = stream, predict
        self._number = -1
        self._on: defaultdict[str, list[tuple[float, float, float]]] = defaultdict(list)

    def choose(self, asked: Request):  # type: ignore[no-untyped-def]  # as of the base class
        """Return the choice, and note when the server is predicted to end."""
        self._number += 1
        server = self._stream[self._number]
        self._predicted = self._predict(server)
        choice = super().choose(asked)
        if choice is not None:
            begin = server.arrival.time
            self._on[choice[0]].append((begin + server.lifetime, begin, self._predicted))
        return choice

    def _best(self, hosts: list[str], scores: Scores | None) -> str:
        now = self._stream[self._number].arrival.time
        further = {root: self._further(root, now) for root in hosts}
        least = min(further.values())
        return super()._best([root for root in hosts if further[root] == least], scores)

    def _further(self, root: str, now: float) -> int:
        """Return how much longer a host is in use, as a power of 2 of hours; 0 up to an hour."""
        self._on[root] = running = [server for server in self._on[root] if server[0] > now]
        in_use = max((_expected_end(now, *server[1:]) for server in running), default=now)
        return max(0, math.ceil(math.log2(max(HOUR, now + self._predicted - in_use))))


def _expected_end(now: float, begin: float, predicted: float) -> float:
    end = begin + predicted
    return end if end > now else now + (now - begin)


class _WithMoves:
    """A cloud whose servers migrate when another server finds no host.

    :ivar moves: the number of migrations.
    """

    def __init__(self, cloud: SimulatedCloud, scheduler: Scheduler, most: int) -> None:
        self._cloud, self._scheduler, self._most = cloud, scheduler, most
        self._hosts = Hosts(cloud=cloud, servers=())
        self._servers: dict[str, PlanServer] = {}
        self._departures: list[tuple[float, str]] = []
        self.moves = 0

    def refused(self, stream: Sequence[Server], demands: dict[str, Demand]) -> float:
        """Return the refused part of the core-hours of a stream."""
        wanted = refused = 0.0
        end = stream[-1].arrival.time
        for number, server in enumerate(stream):
            arrival, demand = server.arrival, demands[server.arrival.flavor]
            while self._departures and self._departures[0][0] <= arrival.time:
                gone = self._servers.pop(heapq.heappop(self._departures)[1])
                self._change(gone.host, gone.amounts, -1)
            hours = demand.request.cpus * min(end - arrival.time, server.lifetime)
            wanted += hours
            if self._take(str(number), demand):
                heapq.heappush(self._departures, (arrival.time + server.lifetime, str(number)))
            else:
                refused += hours
        return refused / wanted

    def _take(self, uuid: str, demand: Demand) -> bool:
        choice = self._scheduler.choose(demand.request)
        if choice is None:
            self._make_room(demand)
            choice = self._scheduler.choose(demand.request)
        if choice is None:
            return False
        root, request = choice
        amounts = amounts_of(request.allocations)
        self._change(root, amounts, 1)
        self._servers[uuid] = PlanServer(
            uuid=uuid, name=uuid, host=root, amounts=amounts, request=demand.request
        )
        return True

    def _make_room(self, demand: Demand) -> None:
        self._hosts.servers, self._hosts.start = list(self._servers.values()), None
        question = Question(room=demand.request, wanted=1, most_moves=self._most)
        plan = make_plan(self._hosts, question, seconds=0)
        for step in plan.steps if plan.after else ():
            uuid, host, amounts = step.move.server.uuid, step.move.host, step.move.amounts
            before = self._servers[uuid]
            self._change(host, amounts, 1)
            self._change(before.host, before.amounts, -1)
            self._servers[uuid] = replace(before, host=host, amounts=amounts)
            self.moves += 1

    def _change(self, root: str, amounts: Amounts, sign: int) -> None:
        allocations: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for (provider, name), amount in amounts:
            allocations[provider][name] = amount
        (self._cloud.claim if sign > 0 else self._cloud.release)(allocations)
        self._scheduler.count(root, sign)


def run_with_moves(
    policy: str, hosts: int, seed: int, options: argparse.Namespace
) -> tuple[float, float]:
    """Return the percentage of the core-hours that is refused, and the moves a day."""
    rng = random.Random(seed)
    stream = servers(rng, are_small=options.small)
    cloud = cloud_of(hosts, options.cpus)
    with_moves = _WithMoves(
        cloud, Scheduler(cloud, Policy.parse(policy, WEIGHERS), rng), options.moves
    )
    refused = with_moves.refused(stream, demands_of_flavors())
    days = stream[-1].arrival.time / 24
    return 100 * refused, with_moves.moves / days


def cloud_of(hosts: int, cpus: int) -> SimulatedCloud:
    """Return a cloud of equal, empty hosts."""
    disk_gb = 4_000 * cpus // CPUS
    amounts = {"VCPU": cpus, "MEMORY_MB": cpus * MEMORY_GIB * 1024, "DISK_GB": disk_gb}
    inventories = {name: inventory(amount) for name, amount in amounts.items()}
    names = [f"host{number}" for number in range(hosts)]
    return SimulatedCloud(
        CloudProvider(uuid=name, name=name, inventories=inventories) for name in names
    )


def demands_of_flavors() -> dict[str, Demand]:
    """Return the demand of each flavor."""
    return {
        name: Demand(Request((translate(ServerRequest(flavor=flavor)),)))
        for name, flavor in flavors().items()
    }


def run(policy: str, hosts: int, seed: int, options: argparse.Namespace) -> Outcome:
    """Return the outcome of a policy."""
    rng, lifetimes, cpus = random.Random(seed), options.lifetimes, options.cpus
    stream = servers(rng, are_small=options.small)
    cloud = cloud_of(hosts, cpus)
    chosen = Policy.parse(policy, WEIGHERS)
    if lifetimes is None:
        scheduler = Scheduler(cloud, chosen, rng)
    else:
        scheduler = _WithLifetimes(cloud, chosen, rng)
        scheduler.watch(stream, predictions(stream)[lifetimes])
    arrivals = [server.arrival for server in stream]
    return simulate(cloud, scheduler, arrivals, demands_of_flavors())


def main() -> None:
    """Print a line for each policy and number of hosts."""
    parser = argparse.ArgumentParser(description="Empty hosts of a plain cloud.")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--cpus", type=int, default=CPUS)
    parser.add_argument("--hosts", action="append", type=int)
    parser.add_argument("--seed", action="append", type=int)
    parser.add_argument("--policy", action="append")
    parser.add_argument("--lifetimes", choices=["exact", "off", "before"])
    parser.add_argument("--moves", type=int, help="migrations for a server without a host")
    options = parser.parse_args()
    if options.lifetimes and options.policy:
        parser.error("--lifetimes: give no --policy: the policy is best-fit alone")
    policies = [f"best-fit{ALONE}"] if options.lifetimes else options.policy or POLICIES
    for hosts in options.hosts or (44, 50, 62):
        for policy in policies:
            if options.moves:
                seeds = options.seed or (1, 2, 3)
                pairs = [run_with_moves(policy, hosts, seed, options) for seed in seeds]
                print(
                    f"{hosts} hosts of {options.cpus}, {policy}, {options.moves} moves:"
                    f" {fmean(part for part, _ in pairs):.2f} % of the core-hours refused,"
                    f" {fmean(daily for _, daily in pairs):.1f} moves a day"
                )
                continue
            outcomes = [run(policy, hosts, seed, options) for seed in options.seed or (1, 2, 3)]
            empty = [
                fmean(m.empty for m in each.course[len(each.course) // 2 :]) for each in outcomes
            ]
            refused = [100 * (each.refused_core_hours or 0.0) for each in outcomes]
            by_seed = ", ".join(f"{e:.1f}/{r:.2f}" for e, r in zip(empty, refused, strict=True))
            print(
                f"{'small, ' if options.small else ''}{hosts} hosts of {options.cpus}, {policy},"
                f" lifetimes {options.lifetimes}: "
                f"{fmean(empty):.1f} empty hosts, {fmean(refused):.2f} % of the core-hours refused"
                f" ({by_seed})",
                flush=True,
            )


if __name__ == "__main__":
    main()
