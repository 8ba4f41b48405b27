"""Policies: the weighers of nova-scheduler with their multipliers. Pure.

The values and the formulas of Nova's weighers are written again here, and a test compares the
weights with Nova's own classes. The scorings are the code of :mod:`cpu_tiers.weights`, which
nova-scheduler runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.tools.cloud_model.cloud import CloudChange, SimulatedCloud
from cpu_tiers.tools.cloud_model.providers import HostProviders
from cpu_tiers.weights import SCORINGS, Scoring

NOVA = "nova"
"""The name of the policy that has only Nova's weighers."""

WEIGHERS: Mapping[str, float] = {"ram": 1.0, "cpu": 1.0, "disk": 1.0, "num_instances": 0.0}
"""Nova's weighers of which a snapshot knows enough, with their default multipliers."""

_WITHOUT_LEAST = {"num_instances"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a scheduler chooses among the hosts that have room.

    :param name: the text that the user has given.
    :param scoring: ``None`` for no scoring.
    :param multiplier: ``resource_provider_weight_multiplier``.
    :param weighers: the multipliers of Nova's weighers.
    :param resources: the resource classes that count, or a mapping with their weights.
    :param traits: the traits that count.
    """

    name: str
    scoring: Scoring | None = None
    multiplier: float = 1.0
    weighers: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHERS))
    resources: Collection[str] = ()
    traits: Collection[str] = ()

    @classmethod
    def parse(
        cls,
        text: str,
        configured: Mapping[str, float],
        scorings: Mapping[str, Scoring] = SCORINGS,
    ) -> Policy:
        """Return the policy of a text, such as ``boring=2.0,cpu=0``.

        :param configured: the multipliers of Nova's weighers; the text overrides them.
        :raises InvalidInput: with every fault of the text.
        """
        where = f"--policy {text}"
        faults = FaultList()
        first, *others = text.split(",")
        name, _, multiplier = first.partition("=")
        if name != NOVA and name not in scorings:
            faults.add(where, f"got {name!r}", f"begin with {', '.join([NOVA, *scorings])}")
        weighers = dict(configured)
        for part in others:
            weigher, _, number = part.partition("=")
            if weigher in WEIGHERS:
                weighers[weigher] = faults.read(_number, where, number) or 0.0
            else:
                faults.add(where, f"got {weigher!r}", f"name {', '.join(WEIGHERS)}")
        if name == NOVA and multiplier:
            faults.add(where, f"{NOVA}={multiplier}", f"give the multipliers as {NOVA},ram=2.0")
        factor = faults.read(_number, where, multiplier) if multiplier else 1.0
        faults.raise_if_any()
        return cls(
            name=text,
            scoring=scorings.get(name),
            multiplier=factor if factor is not None else 1.0,
            weighers=weighers,
        )


def _number(where: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput.of(where, f"got {text!r}", "give a number, such as 2.0 or -1")
    return number


def with_weights(
    weights: list[float], values: Sequence[float], multiplier: float, *, weigher: str
) -> list[float]:
    """Return the weights of hosts with the normalized weights of one more weigher of Nova.

    The free amounts count from 0, and the number of servers from the smallest number.
    Source: Nova, ``nova/weights.py`` and ``nova/scheduler/weights/``.
    """
    if not multiplier or len(weights) < 2:  # Nova does not weigh a single host
        return weights
    smallest = min(values)
    least = smallest if weigher in _WITHOUT_LEAST else 0
    if smallest < least:  # a free amount below 0 counts as 0
        values = [max(value, least) for value in values]
    width = float(max(values)) - float(least)
    if not width:
        return weights
    return [
        weight + multiplier * ((value - least) / width)
        for weight, value in zip(weights, values, strict=True)
    ]


class HostStates:
    """The values that Nova's weighers compare, by weigher and host.

    ``ram`` is the free memory in MiB, ``disk`` the free disk in MiB, and ``cpu`` the number of
    all CPUs, shared and dedicated, times the allocation ratio, minus the CPUs of servers.
    ``num_instances`` is the number of servers that arrived in the simulation.
    Source: Nova, ``nova/scheduler/host_manager.py`` and ``nova/compute/resource_tracker.py``.
    """

    def __init__(self, cloud: SimulatedCloud) -> None:
        hosts_by_root = {host.root: host for host in cloud.hosts}
        self.values: Mapping[str, dict[str, float]] = {
            "ram": {root: _free(host, MEMORY_MB) for root, host in hosts_by_root.items()},
            "cpu": {root: _free_cpus(host) for root, host in hosts_by_root.items()},
            "disk": {root: 1024 * _free(host, DISK_GB) for root, host in hosts_by_root.items()},
            "num_instances": dict.fromkeys(hosts_by_root, 0.0),
        }

    def apply(self, changes: Iterable[CloudChange]) -> None:
        """Subtract the amounts of claims, and add the amounts of releases.

        Of equal pools, only the first is a host.
        """
        for root, _, amounts in changes:
            if root in self.values["ram"]:
                self.values["ram"][root] -= amounts.get(MEMORY_MB, 0)
                self.values["disk"][root] -= 1024 * amounts.get(DISK_GB, 0)
                self.values["cpu"][root] -= amounts.get(VCPU, 0) + amounts.get(PCPU, 0)

    def count(self, root: str, servers: int) -> None:
        """Change the number of servers on a host."""
        self.values["num_instances"][root] += servers


def _free(host: HostProviders, name: str) -> float:
    return sum(
        stock.inventory.total - stock.inventory.reserved - (stock.capacity - stock.free)
        for provider in host.tree
        if (stock := provider.stocks.get(name))
    )


def _free_cpus(host: HostProviders) -> float:
    total, used, ratio = 0, 0, 1.0
    for provider in host.tree:
        for name in (VCPU, PCPU):
            if stock := provider.stocks.get(name):
                total += stock.inventory.total
                used += stock.capacity - stock.free
                if name == VCPU:
                    ratio = stock.inventory.allocation_ratio
    return total * ratio - used
