"""The order of the hosts with candidates: why nova-scheduler prefers a host, and what changes it.

As in Nova (``nova/weights.py``), the raw weights of a weigher are normalized to numbers from 0 to
1 and multiplied by the multiplier of the weigher; the host with the largest sum wins. The weighers
of Nova here are the weighers whose data Placement has: free memory, CPUs and disk.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from oslo_config import cfg

from cpu_tiers.conf.weigher import class_weights, configured_scorings, request_traits
from cpu_tiers.conf.weight_classes import (
    OUR_CLASS,
    OURS,
    LoadedWeighers,
    loaded_weighers,
    notes_on_weighers,
)
from cpu_tiers.extra_specs.soft_traits import soft_traits
from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.frame.terminal import shortened, wrapped
from cpu_tiers.tools.placement.explanation import Explanation
from cpu_tiers.weights import SCORINGS, make_forest
from cpu_tiers.weights.forest import Forest, Summary

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


def raw_weights(free: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, float]]:
    """Return the raw weights of the weighers of Nova, by weigher and host, from free amounts."""
    return {
        weigher: {
            host: float(max(0, sum(amounts.get(name, 0) for name in classes)))
            for host, amounts in free.items()
        }
        for weigher, classes in OF_NOVA.items()
    }


def rank(
    raw: Mapping[str, Mapping[str, float]], multipliers: Mapping[str, float]
) -> list[dict[str, Any]]:
    """Return the hosts, the largest weight first; hosts of equal weight by their names.

    The weight of a host is the sum of its normalized weights times their multipliers, and
    ``weighers`` has the terms of the sum. The ``margin`` of a host is how much larger its weight
    is than that of the next host; ``None`` for the last host.

    :param raw: the raw weights by weigher and host; those of ``OURS`` are scores.
    :param multipliers: of the weighers that nova-scheduler loads; others have the weight 0.
    """
    parts = {
        weigher: {
            host: multipliers.get(weigher, 0.0) * w
            for host, w in _normalized(weigher, weights).items()
        }
        for weigher, weights in raw.items()
    }
    hosts = {
        host: sum(weights[host] for weights in parts.values()) for host in next(iter(raw.values()))
    }
    order = sorted(hosts, key=lambda host: (-hosts[host], host))
    margins = [*(hosts[host] - hosts[after] for host, after in itertools.pairwise(order)), None]
    return [
        {
            "host": host,
            "weight": hosts[host],
            "weighers": {weigher: weights[host] for weigher, weights in parts.items()},
            "margin": margin,
        }
        for host, margin in zip(order, margins, strict=bool(order))
    ]


def other_winners(
    raw: Mapping[str, Mapping[str, float]],
    multipliers: Mapping[str, float],
    scores: Mapping[str, Mapping[str, float]],
) -> list[dict[str, str]]:
    """Return the options of ``[filter_scheduler]`` with which another host would be the first.

    :param scores: the scores of all hosts by the name of the scoring, for the scorings that are
        not in use.
    """
    ranked = rank(raw, multipliers)
    if len(ranked) < 2:
        return []
    # The scoring has no effect with a multiplier of 0.
    trials: list[tuple[str, str, Mapping[str, Mapping[str, float]], Mapping[str, float]]] = [
        ("resource_provider_scoring", scoring, {**raw, OURS: host_scores}, multipliers)
        for scoring, host_scores in scores.items()
        if OURS in multipliers
    ]
    for weigher, multiplier in multipliers.items():
        other = 0.0 if multiplier else 1.0
        option = f"{weigher}_weight_multiplier"
        trials.append((option, str(other), raw, {**multipliers, weigher: other}))
    winners = [
        {"option": option, "value": value, "host": rank(weights, factors)[0]["host"]}
        for option, value, weights, factors in trials
    ]
    return [winner for winner in winners if winner["host"] != ranked[0]["host"]]


def _normalized(weigher: str, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights divided by the largest, as Nova with ``minval = 0``; not our own."""
    largest = 1.0 if weigher in (OURS, SOFT_TRAITS) else max(weights.values(), default=0.0)
    return {host: weight / largest if largest else 0.0 for host, weight in weights.items()}


def free_amounts(
    summaries: Mapping[str, Summary], hosts: Iterable[str]
) -> dict[str, dict[str, int]]:
    """Return the free amounts of all providers of each host, by host and resource class."""
    amounts: dict[str, dict[str, int]] = {host: {} for host in hosts}
    for summary in summaries.values():
        if (free := amounts.get(summary["root_provider_uuid"])) is not None:
            for name, amount in summary["resources"].items():
                free[name] = free.get(name, 0) + amount["capacity"] - amount["used"]
    return amounts


_Rows = Sequence[Mapping[str, Any]]


class Ranking(NamedTuple):
    """The hosts with candidates in the order of nova-scheduler.

    :param rows: the hosts, the best first.
    :param others: the options of ``[filter_scheduler]`` with which another host would be the
        first.
    :param notes: what the order leaves out because of the weighers that nova-scheduler loads.
    """

    rows: _Rows = ()
    others: _Rows = ()
    notes: Sequence[str] = ()

    @property
    def unknown(self) -> Sequence[str]:
        """Return the parts of a decision that the order does not know."""
        return (*self.notes, *LEFT_OUT) if self.rows else ()

    def text(self, *, show_all: bool) -> str:
        """Return the hosts for a terminal, with the parts of their weights."""
        lines = []
        for number, row in enumerate(self.rows, start=1):
            terms = row["weighers"].items()
            parts = ", ".join(f"{name} {part:.4f}" for name, part in terms if part)
            margin = row["margin"]
            before = "" if margin is None else f", {margin:.4f} before the next host"
            line = f"{number}. {row['host']}: weight {row['weight']:.4f}"
            line += f" ({parts})" if parts else ""
            lines.append(wrapped(f"{line}{before}; score {row['score']:.4f}", indent="  "))
        lines = shortened(lines, show_all=show_all)
        said = [wrapped(f"But {note}.") for note in self.notes]
        return "\n".join(["Candidates, best first:", *lines, *said])

    def others_text(self) -> str:
        """Return the options with which another host would be the first, for a terminal."""
        return "\n".join(
            wrapped(f"With [filter_scheduler] {o['option']} = {o['value']}, {o['host']} is first.")
            for o in self.others
        )


def ranking(
    explanation: Explanation,
    query: CandidateQuery,
    options: cfg.ConfigOpts,
    extra_specs: Mapping[str, str],
) -> Ranking:
    """Return the hosts of an explanation with candidates, and what would change the first host.

    :param options: the values of ``[filter_scheduler]``.
    :param extra_specs: of the flavor of the server.
    :raises InvalidInput: a soft trait of nova.conf is both preferred and avoided.
    """
    names = {host: explanation.names[host] for host in sorted(explanation.candidates)}
    summaries = explanation.answer.provider_summaries
    forests = _forests(summaries, query, options)
    scores = {
        name: {names[host]: forest.score(host) for host in names}
        for name, forest in forests.items()
    }
    in_use = options.resource_provider_scoring
    free = {names[host]: amounts for host, amounts in free_amounts(summaries, names).items()}
    raw = {**raw_weights(free), OURS: scores.pop(in_use)}
    traits = request_traits(options, extra_specs)
    soft = traits.of_hosts(summaries, explanation.answer.used_providers())
    if any(soft.values()):
        raw[SOFT_TRAITS] = {names[host]: sum(soft.get(host, {}).values()) for host in names}
    times = loaded_weighers(options.weight_classes).times
    # The soft traits are a part of the weigher of cpu-tiers.
    weighers = LoadedWeighers({**times, SOFT_TRAITS: times.get(OURS, 0)})
    multipliers = weighers.multipliers(options, raw)
    explained = {names[host]: forests[in_use].explain(host) for host in names}
    ranked = rank(raw, multipliers)
    rows = [{"host": row["host"], **explained[row["host"]]._asdict(), **row} for row in ranked]
    winners = other_winners(raw, multipliers, scores)
    if not times.get(OURS):
        winners += _winner_with_ours(raw, multipliers, options, first=ranked[0]["host"])
    wants_ours = bool(soft_traits(extra_specs))
    return Ranking(rows, winners, notes_on_weighers(options, wants_ours=wants_ours))


def _forests(
    summaries: Mapping[str, Summary], query: CandidateQuery, options: cfg.ConfigOpts
) -> Mapping[str, Forest]:
    """Return the forests of all scorings of cpu-tiers, and of the scoring in use, by name."""
    scorings = configured_scorings(options)
    return {
        name: make_forest(
            summaries,
            query.resources(),
            query.required_traits(),
            scoring=scorings[name],
            only_resources=class_weights(options),
            only_traits=options.resource_provider_traits,
        )
        for name in dict.fromkeys([*SCORINGS, options.resource_provider_scoring])
    }


def _winner_with_ours(
    raw: Mapping[str, Mapping[str, float]],
    multipliers: Mapping[str, float],
    options: cfg.ConfigOpts,
    *,
    first: str,
) -> list[dict[str, str]]:
    """Return the host that would be the first if nova-scheduler loaded the weigher of cpu-tiers.

    :param first: the host that is the first now.
    :returns: nothing if the first host would be the same.
    """
    names_of_ours = [name for name in (OURS, SOFT_TRAITS) if name in raw]
    ours = {name: options[f"{name}_weight_multiplier"] for name in names_of_ours}
    host = rank(raw, {**multipliers, **ours})[0]["host"]
    value = ", ".join([*options.weight_classes, OUR_CLASS])
    return [{"option": "weight_classes", "value": value, "host": host}] if host != first else []
