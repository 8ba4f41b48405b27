"""Fill a recorded cluster under a policy, and count which tasks got a host.

    python benchmarks/trace.py FOLDER --workload NAME --policy NAME --seed N
        [--cpu-only PERCENT | --several PERCENT] [--cpus PERCENT]

A scoring is alone, with Nova's multipliers at 0; ``NAME=M`` is the scoring with the multiplier M
beside Nova's weighers.

FOLDER has ``openb_node_list_all_node.csv`` and ``openb_pod_list_NAME.csv`` of
github.com/hkust-adsl/kubernetes-scheduler-simulator, ``data/csv``. The published figures are of
the hosts with devices only, which is the default here. The last options change the list: the
share of the tasks without devices or with several, and how much of all CPUs is asked for.
"""

import argparse
import copy
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from traces.altered import with_cpus, with_share
from traces.cluster import Cluster, Task, arrivals, load_tasks
from traces.ours import beside_nova, policy_of
from traces.published import PUBLISHED, Nova, Policy

from cpu_tiers.weights import SCORINGS

DEMAND = 1.3
"""All tasks together ask for so many times the devices that there are."""

POLICIES: dict[str, type[Policy]] = {
    **{name: each[0] for name, each in PUBLISHED.items()},
    "Nova": Nova,
    **{name: policy_of(scoring) for name, scoring in SCORINGS.items()},
}


def read_policy(text: str) -> type[Policy]:
    """Return the policy of a name, or of the name of a scoring and its multiplier beside Nova.

    :raises ValueError: there is no such policy.
    """
    name, _, multiplier = text.partition("=")
    if multiplier and name in SCORINGS:
        return beside_nova(SCORINGS[name], float(multiplier))
    if text not in POLICIES:
        raise ValueError(text)
    return POLICIES[text]


def kind(task: Task) -> str:
    """Return the column of a task in the report."""
    if not task.gpus:
        return "CPU only"
    return "one device" if task.gpus == 1 else "several devices"


def fill(policy: Policy, stream: Iterable[Task]) -> tuple[Counter[str], Counter[str]]:
    """Place the tasks; return how many of each kind there were, and how many got a host."""
    cluster = policy.cluster
    asked, placed = Counter[str](), Counter[str]()
    has_model = {}
    for task in stream:
        asked[kind(task)] += 1
        if task.models not in has_model:
            has_model[task.models] = cluster.has_model(task)
        hosts = np.flatnonzero(cluster.has_room(task) & has_model[task.models])
        if len(hosts):
            host = int(hosts[np.argmax(policy.scores(task, hosts))])
            cluster.claim(host, task, policy.devices(task, host) if task.gpus else [])
            policy.claimed(host)
            placed[kind(task)] += 1
    return asked, placed


def workload(options: argparse.Namespace, cluster: Cluster) -> tuple[str, list[Task]]:
    """Return the name of the list of tasks, and the tasks."""
    name = options.workload
    tasks = load_tasks(options.folder / f"openb_pod_list_{name}.csv")
    if options.cpu_only is not None:
        tasks = with_share(tasks, lambda task: not task.gpus, options.cpu_only)
        name += f", CPU only {options.cpu_only} %"
    if options.several is not None:
        tasks = with_share(tasks, lambda task: task.gpus > 1, options.several)
        name += f", several devices {options.several} %"
    if options.cpus is not None:
        tasks = with_cpus(tasks, cluster, options.cpus, DEMAND)
        name += f", CPUs {options.cpus} %"
    return name, tasks


def arguments() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(description="Fill a recorded cluster under a policy.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workload", default="default")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--cpu-only", type=int, metavar="PERCENT", choices=range(1, 100))
    kind.add_argument("--several", type=int, metavar="PERCENT", choices=range(1, 100))
    parser.add_argument("--cpus", type=int, metavar="PERCENT")
    parser.add_argument("--policy", action="append", help=f"{', '.join(sorted(POLICIES))}")
    parser.add_argument("--seed", action="append", type=int)
    parser.add_argument("--all-hosts", action="store_true")
    return parser


def main() -> None:
    """Print a line for each policy and seed."""
    parser = arguments()
    options = parser.parse_args()
    hosts = options.folder / "openb_node_list_all_node.csv"
    try:
        empty = Cluster.load(hosts, without_devices=options.all_hosts)
        name, tasks = workload(options, empty)
        policies = {text: read_policy(text) for text in options.policy or PUBLISHED}
    except (OSError, ValueError) as error:
        parser.error(str(error))
    for policy_name, policy_class in policies.items():
        for seed in options.seed or [0]:
            start = time.process_time()
            cluster = copy.deepcopy(empty)
            total = cluster.gpu_in_all
            policy = policy_class(cluster, tasks, random.Random(seed))
            asked, placed = fill(policy, arrivals(tasks, DEMAND * total, random.Random(seed)))
            percent = 100 - 100 * cluster.gpu_in_all / total
            kinds = ", ".join(f"{each} {placed[each]}/{asked[each]}" for each in sorted(asked))
            seconds = time.process_time() - start
            line = f"{name} {policy_name} seed {seed}: {percent:.2f} %; {kinds}"
            print(f"{line}; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
