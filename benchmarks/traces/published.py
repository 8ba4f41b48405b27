"""The four published policies, Random, DotProd, BestFit and FGD, and the default of Nova.

A policy gives each host an integer from 0 to 100; of equal hosts the first in the list gets the
task. Weng et al., "Beware of Fragmentation", USENIX ATC 2023, sections 4 and 6.
"""

import random
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence

import numpy as np

from traces.cluster import DEVICE, Cluster, Floats, Ints, Task

LARGEST_CPU, LARGEST_GPU = 128_000, 8_000
"""The amounts that one host has at most; both terms of a score are divided by them."""


def _whole(scores: Floats) -> Floats:
    """Return scores as whole numbers, as the published policies compare them."""
    whole: Floats = np.floor(scores)
    return whole


class Policy(ABC):
    """A way to choose a host, and the devices of the host."""

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], rng: random.Random) -> None:
        """Start with an empty cluster.

        :param tasks: the recorded tasks, which tell how often each request comes.
        """
        self.cluster = cluster
        self.rng = rng

    @abstractmethod
    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return the scores of hosts with room for a task; the highest score wins."""

    def devices(self, task: Task, host: int) -> list[int]:
        """Return the devices of the host for the task: those with the least free."""
        free = self.cluster.gpu[host]
        fitting = [d for d in np.argsort(free, kind="stable") if free[d] >= task.gpu]
        return [int(d) for d in fitting[: task.gpus]]

    def claimed(self, host: int) -> None:  # noqa: B027  # most policies keep nothing
        """Note that the free amounts of a host have changed."""


class Random(Policy):
    """Any host with room, and any device."""

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return drawn numbers."""
        return np.array([self.rng.random() for _ in hosts])

    def devices(self, task: Task, host: int) -> list[int]:
        """Return drawn devices with enough room."""
        free = self.cluster.gpu[host]
        fitting = [d for d in range(len(free)) if free[d] >= task.gpu]
        return self.rng.sample(fitting, task.gpus)


class Nova(Policy):
    """The host with the most free memory and CPUs, as Nova's default weighers choose it."""

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return the sum of the free shares of the host on which the most is free."""
        memory, cpu = self.cluster.memory_mb[hosts], self.cluster.cpu[hosts]
        scores: Floats = memory / max(1, memory.max()) + cpu / max(1, cpu.max())
        return scores

    def devices(self, task: Task, host: int) -> list[int]:
        """Return the first devices with enough room."""
        return first_devices(self.cluster, task, host)


def first_devices(cluster: Cluster, task: Task, host: int) -> list[int]:
    """Return the first devices of a host with enough room for a task."""
    fitting = np.flatnonzero(cluster.gpu[host] >= task.gpu)
    return [int(device) for device in fitting[: task.gpus]]


class BestFit(Policy):
    """The host on which the least is left."""

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return how little is left."""
        cpu = (self.cluster.cpu[hosts] - task.cpu) / LARGEST_CPU
        gpu = np.maximum(self.cluster.gpu[hosts], 0).sum(axis=1) - task.gpu_in_all
        return _whole(100 * (1 - 0.5 * cpu - 0.5 * gpu / LARGEST_GPU))


class DotProd(Policy):
    """The host whose free amounts have the smallest dot product with the request."""

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return how small the product is."""
        cpu = self.cluster.cpu[hosts] * task.cpu / LARGEST_CPU**2
        free = np.maximum(self.cluster.gpu[hosts], 0).sum(axis=1)
        return _whole(100 * (1 - (cpu + free * task.gpu_in_all / LARGEST_GPU**2) / 2))


class FGD(Policy):
    """The host, and the device, whose fragmentation grows least.

    The fragmentation of a host is the sum over the popular requests of popularity times the free
    thousandths that the request cannot use. Popular are the most frequent requests that
    together are 95 % of all.
    """

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], rng: random.Random) -> None:
        super().__init__(cluster, tasks, rng)
        counts = Counter(task._replace(memory_mb=0) for task in tasks).most_common()
        popular: list[tuple[Task, int]] = []
        total = 0
        while total < 0.95 * len(tasks):
            popular.append(counts[len(popular)])
            total += popular[-1][1]
        self._popularity = np.array([count / total for _, count in popular])
        self._cpu = np.array([task.cpu for task, _ in popular])
        self._gpu = np.array([task.gpu for task, _ in popular])
        self._gpus = np.array([task.gpus for task, _ in popular])
        self._usable = np.array([cluster.has_model(task) & (task.gpus > 0) for task, _ in popular])
        self._known: dict[Task, tuple[Floats, Ints, int | None]] = {}
        self._changes: list[int] = []

    def claimed(self, host: int) -> None:
        """Note that the host has to be worked out anew."""
        self._changes.append(host)

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return how much the fragmentation falls."""
        return self._of(task)[0][hosts]

    def devices(self, task: Task, host: int) -> list[int]:
        """Return the device with the smallest growth, or idle devices for whole devices."""
        chosen = int(self._of(task)[1][host])
        return [chosen] if chosen >= 0 else super().devices(task, host)

    def _of(self, task: Task) -> tuple[Floats, Ints]:
        """Return score and device for all hosts; only changed hosts are worked out anew."""
        size = len(self.cluster.cpu)
        fresh = np.zeros(size), np.full(size, -1, dtype=np.int64), None
        scores, devices, seen = self._known.get(task, fresh)
        changed = range(size) if seen is None else sorted(set(self._changes[seen:]))
        if changed:
            rows = np.array(changed)
            scores[rows], devices[rows] = self._work_out(task, rows)
        self._known[task] = scores, devices, len(self._changes)
        return scores, devices

    def _work_out(self, task: Task, hosts: Ints) -> tuple[Floats, Ints]:
        cpu, gpu = self.cluster.cpu[hosts], self.cluster.gpu[hosts]
        before = self.fragmentation(hosts, cpu, gpu)
        best = np.full(len(hosts), -1.0)
        chosen = np.full(len(hosts), -1, dtype=np.int64)
        if 0 < task.gpu < DEVICE:
            for device in range(gpu.shape[1]):
                after = gpu.copy()
                after[:, device] -= task.gpu
                score = self._score(before - self.fragmentation(hosts, cpu - task.cpu, after))
                better = (gpu[:, device] >= task.gpu) & (score > best)
                best[better], chosen[better] = score[better], device
        else:
            after = gpu.copy()
            idle = gpu >= DEVICE
            taken = idle & (idle.cumsum(axis=1) <= task.gpus)
            after[taken] -= task.gpu
            best = self._score(before - self.fragmentation(hosts, cpu - task.cpu, after))
        return best, chosen

    def _score(self, gain: Floats) -> Floats:
        return _whole(100 / (1 + np.exp(-gain / DEVICE)))

    def fragmentation(self, hosts: Ints, cpu: Ints, gpu: Ints) -> Floats:
        """Return the fragmentation of hosts in thousandths of devices."""
        free = np.maximum(gpu, 0)[:, None, :]
        fits = gpu[:, None, :] >= self._gpu[None, :, None]
        satisfied = (
            (fits.sum(axis=2) >= self._gpus)
            & (cpu[:, None] >= self._cpu)
            & self._usable[:, hosts].T
        )
        usable = np.where(satisfied, (free * fits).sum(axis=2), 0)
        lost: Floats = free.sum(axis=2)[:, 0] - usable @ self._popularity
        return lost


PUBLISHED: dict[str, tuple[type[Policy], float, float]] = {
    "Random": (Random, 87.47, 86.46),
    "DotProd": (DotProd, 90.85, 89.14),
    "BestFit": (BestFit, 93.08, 93.09),
    "FGD": (FGD, 95.39, 94.55),
}
