"""The scorings of cpu-tiers on the recorded cluster: the code that nova-scheduler runs.

A host is a provider tree: the root has the CPUs and the memory, and each device is a child with
1,000 thousandths and the model as its trait. Only hosts that have changed are scored anew, until
the scale of the cloud or the typical servers are worked out anew.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from cpu_tiers.model.request import RequestGroup
from cpu_tiers.weights import Scoring, make_forest
from cpu_tiers.weights.cost import CostForest
from cpu_tiers.weights.cost.amounts import HostTotals
from cpu_tiers.weights.cost.gradient import History, HostKinds
from cpu_tiers.weights.scale import Scale
from cpu_tiers.weights.scoring import CostScoring
from traces.cluster import DEVICE, DEVICES, Cluster, Floats, Ints, Task
from traces.published import Nova, Policy, first_devices

GPU = "CUSTOM_GPU_THOUSANDTHS"
RENEWAL = 1_000
"""The scale of the cloud is worked out anew after so many tasks at the latest, and at first after
each task: nova-scheduler works it out for each request, and an empty cloud has no scale."""


def groups_of(task: Task) -> tuple[RequestGroup, ...]:
    """Return the request groups of a task: a group for each device."""
    models = frozenset({frozenset(map(trait_of, task.models))} if task.models else ())
    whole = RequestGroup(resources={"CUSTOM_CPU": task.cpu, "MEMORY_MB": task.memory_mb})
    device = RequestGroup(suffix="_GPU", resources={GPU: task.gpu}, any_of=models)
    return (whole, *(device._replace(suffix=f"_GPU{n}") for n in range(task.gpus)))


def amounts_of(task: Task) -> dict[str, int]:
    """Return the amounts that a task requests, by resource class."""
    return {"CUSTOM_CPU": task.cpu, "MEMORY_MB": task.memory_mb, GPU: task.gpu_in_all}


def trait_of(model: str) -> str:
    """Return the trait of a model of devices."""
    return f"CUSTOM_GPU_{model}"


class Summarized(Policy):
    """The hosts as the provider summaries of Placement, and which of them have changed."""

    scoring: Scoring

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], rng: random.Random) -> None:
        super().__init__(cluster, tasks, rng)
        self._size = cluster.gpu >= 0
        self._capacity = cluster.cpu.copy(), cluster.memory_mb.copy()
        self._changes: list[int] = []
        self._summaries = [self._summary(host) for host in range(len(cluster.cpu))]

    def claimed(self, host: int) -> None:
        """Note that the host has to be scored anew."""
        self._changes.append(host)
        self._summaries[host] = self._summary(host)

    def _changed(self, task: Task, seen: int) -> list[int]:
        """Return the hosts with room that have changed since a number of changes, or all."""
        changed = range(len(self._summaries)) if seen < 0 else sorted(set(self._changes[seen:]))
        room = self.cluster.has_room(task) & self.cluster.has_model(task)
        return [host for host in changed if room[host]]

    def _summaries_of(self, hosts: Iterable[int]) -> dict[str, Any]:
        return {uuid: each for host in hosts for uuid, each in self._summaries[host].items()}

    def _summary(self, host: int) -> dict[str, Any]:
        cpu, memory_mb = (int(amounts[host]) for amounts in self._capacity)
        free_cpu, free_mb = int(self.cluster.cpu[host]), int(self.cluster.memory_mb[host])
        root = {
            "CUSTOM_CPU": {"capacity": cpu, "used": cpu - free_cpu},
            "MEMORY_MB": {"capacity": memory_mb, "used": memory_mb - free_mb},
        }
        summaries = {str(host): _provider(host, root, [])}
        for device in np.flatnonzero(self._size[host]):
            used = DEVICE - int(self.cluster.gpu[host, device])
            traits = [trait_of(self.cluster.models[host])]
            amounts = {GPU: {"capacity": DEVICE, "used": used}}
            summaries[f"{host}-{device}"] = _provider(host, amounts, traits)
        return summaries


class HostScored(Summarized):
    """Hosts as a scoring chooses them whose scores do not depend on other hosts.

    The weigher does not choose among the candidates of a host under such a scoring: the server
    gets the first devices, as from Nova.
    """

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], rng: random.Random) -> None:
        super().__init__(cluster, tasks, rng)
        self._known: dict[Task, tuple[Floats, int]] = {}

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return the scores of the weigher."""
        scores, seen = self._known.get(task, (np.zeros(len(self._summaries)), -1))
        if changed := self._changed(task, seen):
            required = map(trait_of, task.models if len(task.models) == 1 else ())
            forest = make_forest(
                self._summaries_of(changed),
                amounts_of(task),
                frozenset(required),
                scoring=self.scoring,
            )
            scores[changed] = forest.scores_of([str(host) for host in changed])
        self._known[task] = scores, len(self._changes)
        return scores[hosts]

    def devices(self, task: Task, host: int) -> list[int]:
        """Return the first devices with enough room."""
        return first_devices(self.cluster, task, host)


class CostScored(Summarized):
    """Hosts, and devices, as a scoring chooses them that compares all hosts."""

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], rng: random.Random) -> None:
        super().__init__(cluster, tasks, rng)
        self._history = History()
        self._known: dict[Task, tuple[Floats, Ints, Floats, int]] = {}
        self._scale: Scale | None = None
        self._tasks = self._renewal = 0
        self._room = self._history.room
        self._kinds = HostKinds({})

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return the scores of the weigher."""
        if self._tasks >= self._renewal:
            self._renewal = self._tasks + 1 + min(RENEWAL, self._tasks // 3)
            present = (each for host in self._summaries for each in host.values())
            totals = HostTotals()
            totals.add(present, len(self._summaries))
            self._scale = totals.scale()
            self._known.clear()
        self._tasks += 1
        size = len(self._summaries)
        fresh = np.zeros(size), np.zeros(size, dtype=int), np.zeros(size), -1
        scores, devices, charged, seen = self._known.get(task, fresh)
        for host, *results in self._work_out(task, self._changed(task, seen)):
            scores[host], devices[host], charged[host] = results
        self._known[task] = scores, devices, charged, len(self._changes)
        if self._room is not self._history.room:
            self._room = self._history.room
            self._kinds = HostKinds(self._kinds_of_hosts())
            self._known.clear()
            if seen >= 0:
                self._tasks -= 1
                return self.scores(task, hosts)
        return self._with_rarity(task, hosts, scores[hosts], charged[hosts])

    def _kinds_of_hosts(self) -> dict[str, frozenset[str]]:
        wanted = self._room.wanted
        return {
            str(number): wanted & {trait for each in host.values() for trait in each["traits"]}
            for number, host in enumerate(self._summaries if wanted else ())
        }

    def _with_rarity(self, task: Task, hosts: Ints, scores: Floats, charged: Floats) -> Floats:
        """Add the rarity of all hosts with room, which changes with each task."""
        rarities = self._kinds.rarities([str(host) for host in hosts])
        if not rarities or self._scale is None:
            return scores
        size = self._scale.size(amounts_of(task))
        weighed: Floats = size / (size / scores + np.array(rarities) * charged)
        return weighed

    def devices(self, task: Task, host: int) -> list[int]:
        """Return the device of the best candidate, or else the tightest device."""
        if task not in self._known or task.gpus > 1 or not self.scoring.counts_typical:
            return super().devices(task, host)
        return [int(self._known[task][1][host])]

    def _forest(self, task: Task, hosts: Iterable[int], history: History) -> CostForest:
        forest = make_forest(
            self._summaries_of(hosts),
            amounts_of(task),
            scoring=self.scoring,
            groups=groups_of(task),
            history=history,
            scale=self._scale,
        )
        assert isinstance(forest, CostForest)
        return forest

    def _work_out(self, task: Task, hosts: list[int]) -> Iterable[tuple[int, float, int, float]]:
        forest = self._forest(task, hosts, self._history)
        for host in hosts:
            devices = self._choices(task, host)
            forest.offer(str(host), [self._candidate(task, host, some) for some in devices])
            root = str(host)
            device = (devices[forest.best(root)] or [0])[0]
            # A host by itself is not rare.
            yield host, forest.scores_of([root])[0], device, forest.charged(root)

    def _choices(self, task: Task, host: int) -> list[list[int]]:
        """Return the choices of devices; of idle devices for a task of several only the first."""
        free = self.cluster.gpu[host]
        fitting = [device for device in range(DEVICES) if free[device] >= max(1, task.gpu)]
        if task.gpus == 1:
            alike = {int(free[device]): [device] for device in reversed(fitting)}
            return list(alike.values())
        return [fitting[: task.gpus]]

    def _candidate(
        self, task: Task, host: int, devices: list[int]
    ) -> Mapping[str, Mapping[str, int]]:
        whole = {str(host): {"CUSTOM_CPU": task.cpu, "MEMORY_MB": task.memory_mb}}
        return whole | {f"{host}-{device}": {GPU: task.gpu} for device in devices}


def _provider(root: int, resources: Mapping[str, Any], traits: list[str]) -> dict[str, Any]:
    return {"resources": resources, "traits": traits, "root_provider_uuid": str(root)}


class BesideNova(Policy):
    """A scoring beside Nova's weighers, whose weights Nova stretches to 0 to 1 in each request.

    :cvar multiplier: ``resource_provider_weight_multiplier``.
    """

    of_scoring: type[Summarized]
    multiplier: float

    def __init__(self, cluster: Cluster, tasks: Sequence[Task], rng: random.Random) -> None:
        super().__init__(cluster, tasks, rng)
        self._scored = self.of_scoring(cluster, tasks, rng)
        self._nova = Nova(cluster, tasks, rng)

    def scores(self, task: Task, hosts: Ints) -> Floats:
        """Return the weights of the hosts."""
        scores = self._scored.scores(task, hosts)
        weights: Floats = self.multiplier * scores + self._nova.scores(task, hosts)
        return weights

    def devices(self, task: Task, host: int) -> list[int]:
        """Return the devices that the scoring chooses."""
        return self._scored.devices(task, host)

    def claimed(self, host: int) -> None:
        """Note that the host has to be scored anew."""
        self._scored.claimed(host)


def policy_of(scoring: Scoring) -> type[Summarized]:
    """Return the policy of a scoring alone, with Nova's multipliers at 0."""
    base = CostScored if isinstance(scoring, CostScoring) else HostScored
    return type(type(scoring).__name__, (base,), {"scoring": scoring})


def beside_nova(scoring: Scoring, multiplier: float) -> type[BesideNova]:
    """Return the policy of a scoring with a multiplier, beside Nova's weighers."""
    parts = {"of_scoring": policy_of(scoring), "multiplier": multiplier}
    return type("BesideNova", (BesideNova,), parts)
