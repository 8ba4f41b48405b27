"""Which policy to set where nothing is known of a cloud: each policy on all lists of requests.

    python benchmarks/advice.py FOLDER [--seed N]… [--policy P]…

The lists are those of docs/contributor/evidence.rst: the plain clouds of ``plain.py``, the cloud
of tiers of ``tiers.py``, and of FOLDER the recorded cluster of ``trace.py`` and a month of servers
(``servers-31-days.csv``; in ``servers-31-days-flavors.json`` the flavors as in Nova's API).
``NAME=M`` is the scoring with the multiplier M beside Nova's weighers, ``NAME`` it alone.

Prints for each list the part that is refused, in percent: of the core-hours, or of the devices;
and of the servers. The last line of a policy says by how many points it is behind the best policy
of a list, on average and at most: first in core-hours and devices, then in servers.
"""

import argparse
import copy
import random
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import fmean
from trace import DEMAND, fill, read_policy
from typing import NamedTuple

import plain
import tiers
from simulate import inventory
from traces.cluster import Cluster, arrivals, load_tasks

from cpu_tiers.errors import FaultList
from cpu_tiers.tools.cloud_model import CloudProvider, SimulatedCloud
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.frame.documents import read_flavors
from cpu_tiers.tools.room.server_queries import Request
from cpu_tiers.tools.simulation.policies import Policy
from cpu_tiers.tools.simulation.requests import read_arrivals
from cpu_tiers.tools.simulation.run import Demand, Outcome, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.translators import ServerRequest, translate

POLICIES = (
    "nova",
    "boring=10",
    "best-fit=10",
    "best-fit=100",
    "best-fit",
    "fragmentation=10",
    "fragmentation=100",
    "fragmentation",
)
MONTH_HOSTS, MONTH_HOST = 265, {"VCPU": 192, "MEMORY_MB": 960 * 1024, "DISK_GB": 8_000}


class Refused(NamedTuple):
    """The refused part in percent: of core-hours or devices, and of servers."""

    amounts: float
    servers: float


def of_outcome(outcome: Outcome) -> Refused:
    """Return the refused part of what a simulation was asked for."""
    refused, taken = sum(outcome.refused.values()), sum(outcome.taken.values())
    core_hours = outcome.refused_core_hours or 0.0
    return Refused(100 * core_hours, 100 * refused / (refused + taken))


def of_plain(hosts: int, *, small: bool) -> Callable[[str, int], Refused]:
    """Return the run of a plain cloud."""
    options = Namespace(lifetimes=None, small=small, cpus=plain.CPUS)
    return lambda policy, seed: of_outcome(plain.run(_text(policy), hosts, seed, options))


def of_tiers(policy: str, seed: int) -> Refused:
    """Return what a cloud of tiers refuses."""
    return of_outcome(tiers.run(_text(policy), seed, tiers.REQUESTS)[0])


def of_month(folder: Path) -> Callable[[str, int], Refused]:
    """Return the run of a month of servers."""
    faults = FaultList()
    flavors = read_flavors(str(folder / "servers-31-days-flavors.json"), faults)
    demands = {
        flavor.name: Demand(Request((translate(ServerRequest(flavor=flavor)),)))
        for flavor in flavors
    }
    faults.raise_if_any()
    file = folder / "servers-31-days.csv"
    stream = read_arrivals(file.read_text().splitlines(), demands, where=str(file))
    inventories = {name: inventory(amount) for name, amount in MONTH_HOST.items()}

    def run(policy: str, seed: int) -> Refused:
        names = [f"host{number}" for number in range(MONTH_HOSTS)]
        cloud = SimulatedCloud(
            CloudProvider(uuid=name, name=name, inventories=inventories) for name in names
        )
        chosen = Policy.parse(_text(policy), WEIGHERS)
        scheduler = Scheduler(cloud, chosen, random.Random(seed))
        return of_outcome(simulate(cloud, scheduler, stream, demands))

    return run


def of_devices(folder: Path, workload: str) -> Callable[[str, int], Refused]:
    """Return the run of the recorded cluster: the devices that are not allocated at the end."""
    empty = Cluster.load(folder / "openb_node_list_all_node.csv", without_devices=False)
    tasks = load_tasks(folder / f"openb_pod_list_{workload}.csv")

    def run(policy: str, seed: int) -> Refused:
        cluster, total = copy.deepcopy(empty), empty.gpu_in_all
        chosen = read_policy(policy.replace("nova", "Nova"))
        placing = chosen(cluster, tasks, random.Random(seed))
        asked, placed = fill(placing, arrivals(tasks, DEMAND * total, random.Random(seed)))
        servers = 100 - 100 * placed.total() / asked.total()
        return Refused(100 * cluster.gpu_in_all / total, servers)

    return run


def _text(policy: str) -> str:
    """Return a policy as ``cpu-tiers simulate`` takes it."""
    return policy if "=" in policy or policy == "nova" else policy + plain.ALONE


def lists(folder: Path) -> Mapping[str, Callable[[str, int], Refused]]:
    """Return the run of each list, by its name."""
    return {
        "plain, 44 hosts": of_plain(44, small=False),
        "plain, 50 hosts": of_plain(50, small=False),
        "small, 44 hosts": of_plain(44, small=True),
        "tiers": of_tiers,
        "month": of_month(folder),
        "devices, default": of_devices(folder, "default"),
        "devices, gpuspec33": of_devices(folder, "gpuspec33"),
    }


def behind(refused: Mapping[tuple[str, str], Refused], policy: str) -> Iterator[list[float]]:
    """Yield by how many points a policy is behind the best of each list, by each measure."""
    names = dict.fromkeys(name for name, _ in refused)
    for measure in range(2):
        best = {
            name: min(each[measure] for (other, _), each in refused.items() if other == name)
            for name in names
        }
        yield [refused[name, policy][measure] - best[name] for name in names]


def main() -> None:
    """Print a line for each policy and list, and then how far each policy is behind."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", action="append", type=int)
    parser.add_argument("--policy", action="append")
    options = parser.parse_args()
    refused = dict[tuple[str, str], Refused]()
    policies = options.policy or POLICIES
    for name, run in lists(options.folder).items():
        for policy in policies:
            runs = [run(policy, seed) for seed in options.seed or (1,)]
            mean = Refused(*map(fmean, zip(*runs, strict=True)))
            refused[name, policy] = mean
            print(f"{name}, {policy}: {mean.amounts:.2f}, servers {mean.servers:.2f}", flush=True)
    for policy in policies:
        amounts, servers = behind(refused, policy)
        print(
            f"{policy}: behind the best {fmean(amounts):.2f}, at most {max(amounts):.2f};"
            f" servers {fmean(servers):.2f}, at most {max(servers):.2f}"
        )


if __name__ == "__main__":
    main()
