"""A recorded GPU cluster: its hosts, and its tasks as a stream of requests.

The files are those of github.com/hkust-adsl/kubernetes-scheduler-simulator, ``data/csv``.
A task that shares a GPU asks for thousandths of one device; a task of several GPUs asks for
whole devices.
"""

import csv
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

DEVICE = 1_000
"""The thousandths of a GPU device."""

DEVICES = 8
"""The most devices of a host."""

HOST_COLUMNS = frozenset({"cpu_milli", "memory_mib", "gpu", "model"})
TASK_COLUMNS = frozenset({"cpu_milli", "memory_mib", "num_gpu", "gpu_milli"})
"""The columns that a list of tasks has at least."""

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
        :raises ValueError: the list has no hosts, or lacks a column.
        """
        with path.open(newline="") as lines:
            table = csv.DictReader(lines)
            missing = HOST_COLUMNS.difference(table.fieldnames or ())
            if missing:
                raise ValueError(f"{path}: the columns {', '.join(sorted(missing))} are missing")
            rows = [row for row in table if without_devices or int(row["gpu"])]
        if not rows:
            raise ValueError(f"{path}: no hosts")
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
    """Read the list of tasks. Without the column ``gpu_spec``, tasks can use all models.

    :raises ValueError: the list cannot be read, with the line.
    """
    with path.open(newline="") as lines:
        table = csv.DictReader(lines)
        missing = TASK_COLUMNS.difference(table.fieldnames or ())
        if missing:
            raise ValueError(
                f"{path}, line 1: the columns {', '.join(sorted(missing))} are missing"
            )
        tasks = [_task(row, f"{path}, line {table.line_num}") for row in table]
    if not any(task.gpus for task in tasks):
        raise ValueError(f"{path}: no task asks for a device; give a list of tasks with devices")
    return tasks


def _task(row: Mapping[str, str | None], where: str) -> Task:
    try:
        cpu, memory_mb, gpus = (
            int(row[name] or "") for name in ("cpu_milli", "memory_mib", "num_gpu")
        )
        gpu = int(row["gpu_milli"] or "") if gpus else 0
    except ValueError as error:
        raise ValueError(f"{where}: {error}; give whole numbers") from error
    if min(cpu, memory_mb, gpus) < 0 or gpus > DEVICES or (gpus and not 0 < gpu <= DEVICE):
        raise ValueError(f"{where}: give at most {DEVICES} devices, and 1 to {DEVICE} of each")
    models = (row.get("gpu_spec") or "").split("|")
    return Task(cpu, memory_mb, gpus, gpu, frozenset(filter(None, models)))


def arrivals(tasks: list[Task], thousandths: float, rng: random.Random) -> Iterator[Task]:
    """Yield all tasks in random order, then drawn tasks, which ask for so many thousandths."""
    asked = 0
    for task in rng.sample(tasks, len(tasks)):
        asked += task.gpu_in_all
        yield task
    while asked + (task := rng.choice(tasks)).gpu_in_all <= thousandths:
        asked += task.gpu_in_all
        yield task
