"""Memory and descriptors of each service over a day, and whether they are flat.

A service has a life between two restarts, while its process stays the same. Of the longest life of
each service, the first quarter fills caches; the medians of the second and of the last quarter are
compared. Memory is the proportional set size (PSS) of the process and its children, because the
children of a fork share pages, which the resident set size counts twice.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.cloud.rest import Cloud
from tests.cloud.two_hosts import HOSTS

USAGE = Path(__file__).with_name("usage.py")
MEMORY_MB, MEMORY_PART, DESCRIPTORS = 15.0, 0.1, 8
"""How much more is flat: the larger of both of memory."""
_FEWEST = 8
"""The samples of a life that can be judged."""


class Sample(NamedTuple):
    """What a service used at a moment."""

    pid: int
    memory: float
    descriptors: int


class Life(NamedTuple):
    """The medians of the quarters of the longest life of a service; none if it was too short."""

    service: str
    samples: int
    memory: Sequence[float]
    descriptors: Sequence[float]

    @property
    def is_flat(self) -> bool:
        if not self.memory:
            return True
        more = max(MEMORY_MB, MEMORY_PART * self.memory[1])
        few = self.descriptors[1] + DESCRIPTORS
        return self.memory[3] <= self.memory[1] + more and self.descriptors[3] <= few

    def __str__(self) -> str:
        memory, descriptors = (
            " -> ".join(f"{median:.{digits}f}" for median in medians) or "not judged"
            for digits, medians in ((1, self.memory), (0, self.descriptors))
        )
        text = f"{self.service}: {self.samples} samples, MB {memory}, descriptors {descriptors}"
        return text if self.is_flat else f"{text}, NOT FLAT"


class Usages:
    """The samples of a day, by service and host."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud
        self.samples: dict[str, list[Sample]] = {}

    def look(self) -> None:
        """Take a sample of all services."""
        for host in HOSTS:
            status, output = self.cloud.on(host, f"python3 {USAGE}")
            assert status == 0, output
            for name, used in json.loads(output.splitlines()[-1]).items():
                where = name if host == "compute1" else f"{name} on {host}"
                sample = Sample(int(used["pid"]), used["Pss"], int(used["fds"]))
                self.samples.setdefault(where, []).append(sample)

    def lives(self) -> Iterator[Life]:
        """Yield the longest life of each service."""
        for service, samples in sorted(self.samples.items()):
            pids = [sample.pid for sample in samples]
            longest = max(pids, key=pids.count)
            life = [sample for sample in samples if sample.pid == longest]
            size = len(life) // 4 if len(life) >= _FEWEST else 0
            starts = (0, size, 2 * size, len(life) - size) if size else ()
            quarters = [life[start : start + size] for start in starts]
            yield Life(
                service,
                len(life),
                [median(sample.memory for sample in quarter) for quarter in quarters],
                [median(sample.descriptors for sample in quarter) for quarter in quarters],
            )
