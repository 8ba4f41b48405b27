"""Nova's weighers of memory, CPUs, disk and servers, with the values that Nova compares. Pure.

The weighers compare what nova-compute reports beside Placement, which differs from the free
amounts of Placement. nova-compute counts no allocation ratio of memory and disk, and no dedicated
CPUs; the vCPUs of all servers, the pinned vCPUs included, count as used. The tests compare the
amounts with the host states of real nova-computes, and the weights with Nova's own classes.

Source: Nova, ``weights.py``, ``scheduler/weights/``, ``scheduler/host_manager.py`` and
``compute/resource_tracker.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.tools.cloud_model.cloud import CloudChange
from cpu_tiers.tools.cloud_model.providers import HostProviders, SimulatedProvider

WEIGHERS: Mapping[str, float] = {"ram": 1.0, "cpu": 1.0, "disk": 1.0, "num_instances": 0.0}
"""The weighers whose data a snapshot has, with the default values of their multipliers."""

CLASSES: Mapping[str, tuple[str, ...]] = {
    "ram": (MEMORY_MB,),
    "cpu": (VCPU, PCPU),
    "disk": (DISK_GB,),
}
"""The weighers of free amounts, with the resource classes of servers that lower the amounts."""

_WEIGHER_OF = {name: weigher for weigher, names in CLASSES.items() for name in names}

NOT_IN_PLACEMENT = ("num_instances", "hypervisor_version")
"""Weighers whose data nova-compute reports, and Placement does not have."""


def normalized(values: Sequence[float], *, weigher: str) -> Sequence[float]:
    """Return the normalized weights of hosts, from 0 to 1.

    The free amounts count from 0, and the other values from the smallest value of a host.
    """
    return _added([0.0] * len(values), values, 1.0, weigher)


def with_weights(
    weights: list[float], values: Sequence[float], multiplier: float, *, weigher: str
) -> list[float]:
    """Return the weights of hosts with the normalized weights of one more weigher."""
    if not multiplier or len(weights) < 2:  # Nova does not weigh a single host
        return weights
    return _added(weights, values, multiplier, weigher)


def _added(
    weights: list[float], values: Sequence[float], multiplier: float, weigher: str
) -> list[float]:
    """Return weights with the normalized weights of a weigher, in one pass over all hosts."""
    smallest = min(values)
    least = smallest if weigher in NOT_IN_PLACEMENT else 0
    if smallest < least:  # a free amount below 0 counts as 0
        values = [max(value, least) for value in values]
    width = float(max(values)) - float(least)
    if not width:
        return weights
    return [
        weight + multiplier * ((value - least) / width)
        for weight, value in zip(weights, values, strict=True)
    ]


class FreeAmount(NamedTuple):
    """The free amount of a host that a weigher compares, as nova-compute reports the amount.

    :param beside: what nova-compute counts beside the free amounts of ``rows``.
    :param rows: the inventories of the host whose free amounts count: provider and class.
    """

    beside: float = 0.0
    rows: tuple[tuple[str, str], ...] = ()


def free_amounts(tree: Iterable[SimulatedProvider]) -> dict[str, FreeAmount]:
    """Return the free amounts of a host, in MiB, CPUs and GiB, by weigher.

    :param tree: the providers of the host itself, without shared providers.
    """
    amounts = dict.fromkeys(CLASSES, FreeAmount())
    for provider in tree:
        for weigher, classes in CLASSES.items():
            for name in classes:
                if stock := provider.stocks.get(name):
                    before = amounts[weigher]
                    amounts[weigher] = FreeAmount(
                        before.beside + _total(name, stock.inventory) - stock.capacity,
                        (*before.rows, (provider.uuid, name)),
                    )
    return amounts


def _total(name: str, inventory: Inventory) -> float:
    """Return what nova-compute has of an inventory without any server."""
    if name == PCPU:
        return 0.0
    ratio = inventory.allocation_ratio if name == VCPU else 1.0
    return inventory.total * ratio - inventory.reserved


class HostStates:
    """The values that the weighers compare, by weigher and host.

    ``num_instances`` is the number of servers that arrived in the simulation.
    """

    def __init__(self, hosts: Iterable[HostProviders]) -> None:
        self.values: Mapping[str, dict[str, float]] = {weigher: {} for weigher in WEIGHERS}
        for host in hosts:
            stocks = {p.uuid: p.stocks for p in host.tree}
            for weigher, amount in free_amounts(host.tree).items():
                free = (stocks[uuid][name].free for uuid, name in amount.rows)
                self.values[weigher][host.root] = amount.beside + sum(free)
            self.values["num_instances"][host.root] = 0.0

    def apply(self, changes: Iterable[CloudChange]) -> None:
        """Subtract the amounts of claims, and add the amounts of releases.

        Of equal pools, only the first is a host.
        """
        for root, _, amounts in changes:
            if root in self.values["ram"]:
                for name, amount in amounts.items():
                    if weigher := _WEIGHER_OF.get(name):
                        self.values[weigher][root] -= amount

    def count(self, root: str, servers: int) -> None:
        """Change the number of servers on a host."""
        self.values["num_instances"][root] += servers
