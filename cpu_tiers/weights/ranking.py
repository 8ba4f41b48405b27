"""The order of the hosts of a request: the weigher of cpu-tiers beside weighers of Nova.

As in Nova (``nova/weights.py``), the raw weights of a weigher are normalized to numbers from 0 to
1 and multiplied by the multiplier of the weigher; the host with the largest sum wins. The weighers
of Nova here are the weighers whose data Placement has: free memory, CPUs and disk. Pure.
"""

import itertools
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.weights.forest import Summary

OURS = "resource_provider"
"""The name of the weigher of cpu-tiers, without ``_weight_multiplier`` of its option."""

SOFT_TRAITS = "resource_provider_trait"
"""The name of the part of the weigher that follows from preferred and avoided traits."""

OF_NOVA: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"ram": (MEMORY_MB,), "cpu": (VCPU, PCPU), "disk": (DISK_GB,)}
)
"""Weighers of Nova, with the resource classes whose free amounts are the raw weight."""

LEFT_OUT = (
    "Nova's weighers of build failures, cross-cell moves, hypervisor versions, image properties,"
    " I/O, metrics, numbers of servers, PCI devices and server groups, nearness, and the"
    " multipliers and shapes of aggregates: only nova-scheduler has their data",
    "memory and CPUs of Nova's weighers are here the free amounts in Placement, with the"
    " allocation ratio",
)
"""The parts of Nova's order that :func:`rank` does not know."""


class RankedHost(NamedTuple):
    """A host with its weight.

    :param parts: the normalized weight times the multiplier, by the name of the weigher.
    :param margin: how much larger the weight is than the weight of the next host; ``None`` for
        the last host.
    """

    host: str
    weight: float
    parts: Mapping[str, float]
    margin: float | None


class OtherWinner(NamedTuple):
    """An option of ``[filter_scheduler]`` with which another host would be the first."""

    option: str
    value: str
    host: str


def raw_weights(free: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, float]]:
    """Return the raw weights of the weighers of Nova, by weigher and host.

    :param free: the free amounts of each host by resource class.
    """
    return {
        weigher: {
            host: float(max(0, sum(amounts.get(name, 0) for name in classes)))
            for host, amounts in free.items()
        }
        for weigher, classes in OF_NOVA.items()
    }


def rank(
    raw: Mapping[str, Mapping[str, float]], multipliers: Mapping[str, float]
) -> tuple[RankedHost, ...]:
    """Return the hosts, the largest weight first; hosts of equal weight by their names.

    :param raw: the raw weights by weigher and host; those of :data:`OURS` are scores.
    :param multipliers: by weigher.
    """
    parts = {
        weigher: {host: multipliers[weigher] * w for host, w in _normalized(weigher, of).items()}
        for weigher, of in raw.items()
    }
    hosts = {host: sum(of[host] for of in parts.values()) for host in next(iter(raw.values()))}
    order = sorted(hosts, key=lambda host: (-hosts[host], host))
    margins = [*(hosts[host] - hosts[after] for host, after in itertools.pairwise(order)), None]
    return tuple(
        RankedHost(host, hosts[host], {weigher: of[host] for weigher, of in parts.items()}, margin)
        for host, margin in zip(order, margins, strict=bool(order))
    )


def other_winners(
    raw: Mapping[str, Mapping[str, float]],
    multipliers: Mapping[str, float],
    scores: Mapping[str, Mapping[str, float]],
) -> tuple[OtherWinner, ...]:
    """Return the changes of a single option with which another host would be the first.

    :param scores: the scores of all hosts by the name of the scoring, for the scorings that are
        not in use.
    """
    ranked = rank(raw, multipliers)
    if len(ranked) < 2:
        return ()
    # The scoring has no effect with a multiplier of 0.
    trials: list[tuple[str, str, Mapping[str, Mapping[str, float]], Mapping[str, float]]] = [
        ("resource_provider_scoring", scoring, {**raw, OURS: of}, multipliers)
        for scoring, of in scores.items()
    ]
    for weigher, multiplier in multipliers.items():
        other = 0.0 if multiplier else 1.0
        option = f"{weigher}_weight_multiplier"
        trials.append((option, str(other), raw, {**multipliers, weigher: other}))
    winners = [
        OtherWinner(option, value, rank(weights, factors)[0].host)
        for option, value, weights, factors in trials
    ]
    return tuple(winner for winner in winners if winner.host != ranked[0].host)


def _normalized(weigher: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights between 0 and 1: divided by the largest, as with Nova's ``minval = 0``.

    The weights of cpu-tiers itself are not normalized.
    """
    largest = 1.0 if weigher in (OURS, SOFT_TRAITS) else max(weights.values(), default=0.0)
    return {host: weight / largest if largest else 0.0 for host, weight in weights.items()}


def free_amounts(
    summaries: Mapping[str, Summary], hosts: Iterable[str]
) -> dict[str, dict[str, int]]:
    """Return the free amounts of all providers of each host, by host and resource class.

    :param hosts: the root providers of the hosts.
    """
    amounts: dict[str, dict[str, int]] = {host: {} for host in hosts}
    for summary in summaries.values():
        if (free := amounts.get(summary["root_provider_uuid"])) is not None:
            for name, amount in summary["resources"].items():
                free[name] = free.get(name, 0) + amount["capacity"] - amount["used"]
    return amounts
