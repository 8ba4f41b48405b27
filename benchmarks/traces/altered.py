"""Lists of tasks made of a recorded list: with more CPUs, or with more tasks of a kind.

The formula of ``fragmentation`` was chosen on some of these lists and checked on the others, see
``docs/contributor/evidence.rst``.
"""

import random
from collections.abc import Callable, Sequence

from traces.cluster import Cluster, Task

MOST_CPU = 96_000
"""No request grows beyond the CPUs of the most frequent hosts, else it would never find a host."""


def with_share(
    tasks: Sequence[Task], is_of_kind: Callable[[Task], bool], percent: int
) -> list[Task]:
    """Return drawn tasks that ask for as many devices in all, of which a share is of a kind.

    :param percent: the share of the tasks.
    """
    rng = random.Random(percent)
    kind = [task for task in tasks if is_of_kind(task)]
    others = [task for task in tasks if not is_of_kind(task)]
    wanted, asked, drawn = sum(task.gpu_in_all for task in tasks), 0, list[Task]()
    while asked < wanted:
        drawn.append(rng.choice(kind if rng.random() < percent / 100 else others))
        asked += drawn[-1].gpu_in_all
    return drawn


def with_cpus(tasks: Sequence[Task], cluster: Cluster, percent: int, demand: float) -> list[Task]:
    """Return the tasks with requests for CPUs that are all multiplied by the same number.

    :param percent: of all CPUs of the cluster, which are asked for in all.
    :param demand: how many times the devices of the cluster are asked for.
    """
    rounds = demand * cluster.gpu_in_all / sum(task.gpu_in_all for task in tasks)
    wanted = percent / 100 * int(cluster.cpu.sum()) / rounds
    least, most = 1.0, 3.0
    scaled: list[Task] = []
    for _ in range(50):
        factor = (least + most) / 2
        scaled = [
            task._replace(cpu=max(task.cpu, min(round(task.cpu * factor), MOST_CPU)))
            for task in tasks
        ]
        least, most = (factor, most) if sum(t.cpu for t in scaled) < wanted else (least, factor)
    return scaled
