"""A recorded GPU cluster: its hosts, and its tasks as a stream of requests.

The files are those of github.com/hkust-adsl/kubernetes-scheduler-simulator, ``data/csv``.
A task that shares a GPU asks for thousandths of one device; a task of several GPUs asks for
whole devices.
"""

import csv
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEVICE = 1_000
"""The thousandths of a GPU device."""

DEVICES = 8
"""The most devices of a host."""

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class Task(NamedTuple):
    """The request of a task.

    :param cpu: thousandths of a CPU.
    :param memory_mb: memory in MiB.
    :param gpus: the number of devices.
    :param gpu: thousandths of each of the devices.
    :param models: the models of devices that the task can use; empty for all models.
    """

    cpu: int
    memory_mb: int
    gpus: int
    gpu: int
    models: frozenset[str]

    @property
    def gpu_in_all(self) -> int:
        """The thousandths of all devices."""
        return self.gpus * self.gpu


@dataclass(slots=True, kw_only=True)
class Cluster:
    """The free amounts of all hosts, as arrays with a row for each host.

    :param cpu: free thousandths of CPUs.
    :param memory_mb: free memory in MiB.
    :param gpu: free thousandths of each device; -1 where the host has no such device.
    :param models: the model of the devices of each host; empty without devices.
    """

    cpu: Ints
    memory_mb: Ints
    gpu: Ints
    models: tuple[str, ...]

    @classmethod
    def load(cls, path: Path, *, without_devices: bool = False) -> "Cluster":
        """Read the list of hosts.

        :param without_devices: read hosts without devices, too.
        """
        with path.open(newline="") as lines:
            rows = [row for row in csv.DictReader(lines) if without_devices or int(row["gpu"])]
        gpu = np.full((len(rows), DEVICES), -1, dtype=np.int64)
        for free, row in zip(gpu, rows, strict=True):
            free[: int(row["gpu"])] = DEVICE
        return cls(
            cpu=np.array([int(row["cpu_milli"]) for row in rows]),
            memory_mb=np.array([int(row["memory_mib"]) for row in rows]),
            gpu=gpu,
            models=tuple(row["model"] for row in rows),
        )

    @property
    def gpu_in_all(self) -> int:
        """The free thousandths of all devices of all hosts."""
        return int(self.gpu[self.gpu > 0].sum())

    def has_model(self, task: Task) -> NDArray[np.bool_]:
        """Tell for each host whether the task can use its model of devices."""
        return np.array([not task.models or model in task.models for model in self.models])

    def has_room(self, task: Task) -> NDArray[np.bool_]:
        """Tell for each host whether enough is free for the task."""
        room = (self.cpu >= task.cpu) & (self.memory_mb >= task.memory_mb)
        if task.gpus:
            room &= (self.gpu >= task.gpu).sum(axis=1) >= task.gpus
        return room

    def claim(self, host: int, task: Task, devices: list[int]) -> None:
        """Subtract a task from a host and its devices."""
        self.cpu[host] -= task.cpu
        self.memory_mb[host] -= task.memory_mb
        self.gpu[host, devices] -= task.gpu


def load_tasks(path: Path) -> list[Task]:
    """Read the list of tasks."""
    with path.open(newline="") as lines:
        return [
            Task(
                cpu=int(row["cpu_milli"]),
                memory_mb=int(row["memory_mib"]),
                gpus=int(row["num_gpu"]),
                gpu=int(row["gpu_milli"]) if int(row["num_gpu"]) else 0,
                models=frozenset(filter(None, row["gpu_spec"].split("|"))),
            )
            for row in csv.DictReader(lines)
        ]


def arrivals(tasks: list[Task], thousandths: float, rng: random.Random) -> Iterator[Task]:
    """Yield all tasks in random order, then drawn tasks, which ask for so many thousandths."""
    asked = 0
    for task in rng.sample(tasks, len(tasks)):
        asked += task.gpu_in_all
        yield task
    while asked + (task := rng.choice(tasks)).gpu_in_all <= thousandths:
        asked += task.gpu_in_all
        yield task
