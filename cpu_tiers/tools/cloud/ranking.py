"""The order of the hosts with candidates: why nova-scheduler prefers a host, and what changes it.

As in Nova (``nova/weights.py``), the raw weights of a weigher are normalized to numbers from 0 to
1 and multiplied by the multiplier of the weigher, which may be that of a host aggregate; the host
with the largest sum wins.
"""

import itertools
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from oslo_config import cfg

from cpu_tiers.conf.weigher import class_weights, configured_scorings, request_traits
from cpu_tiers.conf.weigher_types import ShapeType
from cpu_tiers.conf.weight_classes import (
    OUR_CLASS,
    OURS,
    LoadedWeighers,
    loaded_weighers,
    notes_on_weighers,
)
from cpu_tiers.extra_specs.soft_traits import soft_traits
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud.weighed_hosts import WeighedHosts
from cpu_tiers.tools.cloud_model.nova_weighers import normalized
from cpu_tiers.tools.frame.terminal import shortened, wrapped
from cpu_tiers.tools.placement.explanation import Explanation
from cpu_tiers.weights import REQUESTED_TO_CAPACITY, SCORINGS, RequestedToCapacity, make_forest
from cpu_tiers.weights.forest import Forest, Summary

SOFT_TRAITS = "resource_provider_trait"
"""The name of the part of the weigher that follows from preferred and avoided traits."""

LEFT_OUT = (
    "Nova's weighers of build failures, cross-cell moves, image properties, I/O, metrics, PCI"
    " devices and server groups, and nearness: only nova-scheduler has their data"
)
"""The parts of Nova's order that :func:`rank` does not know."""

Weights = Mapping[str, Mapping[str, float]]
"""Numbers by weigher and host."""

_NONE: Weights = MappingProxyType({})


def rank(
    raw: Weights, multipliers: Mapping[str, float], own: Weights = _NONE
) -> list[dict[str, Any]]:
    """Return the hosts, the largest weight first; hosts of equal weight by their names.

    The weight of a host is the sum of its normalized weights times their multipliers, and
    ``weighers`` has the terms of the sum. The ``margin`` of a host is how much larger its weight
    is than that of the next host; ``None`` for the last host.

    :param raw: the raw weights by weigher and host; those of ``OURS`` are scores.
    :param multipliers: of the weighers that nova-scheduler loads; others have the weight 0.
    :param own: the multipliers that hosts have of their aggregates, in place of ``multipliers``.
    """

    def multiplied(weigher: str) -> Mapping[str, float]:
        own_of = own.get(weigher, {}) if weigher in multipliers else {}
        usual = multipliers.get(weigher, 0.0)
        normal = _normalized(weigher, raw[weigher])
        return {host: own_of.get(host, usual) * w for host, w in normal.items()}

    parts = {weigher: multiplied(weigher) for weigher in raw}
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
    raw: Weights, multipliers: Mapping[str, float], scores: Weights, own: Weights = _NONE
) -> list[dict[str, str]]:
    """Return the options of ``[filter_scheduler]`` with which another host would be the first.

    :param scores: the scores of all hosts by the name of the scoring, for the scorings that are
        not in use.
    """
    ranked = rank(raw, multipliers, own)
    if len(ranked) < 2:
        return []
    # The scoring has no effect with a multiplier of 0.
    trials: list[tuple[str, str, Weights, Mapping[str, float]]] = [
        ("resource_provider_scoring", scoring, {**raw, OURS: host_scores}, multipliers)
        for scoring, host_scores in scores.items()
        if OURS in multipliers
    ]
    for weigher, multiplier in multipliers.items():
        other = 0.0 if multiplier else 1.0
        option = f"{weigher}_weight_multiplier"
        trials.append((option, str(other), raw, {**multipliers, weigher: other}))
    winners = [
        {"option": option, "value": value, "host": rank(weights, factors, own)[0]["host"]}
        for option, value, weights, factors in trials
    ]
    return [winner for winner in winners if winner["host"] != ranked[0]["host"]]


def _normalized(weigher: str, weights: Mapping[str, float]) -> Mapping[str, float]:
    """Return the weights as Nova stretches them to 0 to 1; not those of cpu-tiers."""
    if weigher in (OURS, SOFT_TRAITS) or not weights:
        return weights
    parts = normalized(list(weights.values()), weigher=weigher)
    return dict(zip(weights, parts, strict=True))


_Rows = Sequence[Mapping[str, Any]]


class Ranking(NamedTuple):
    """The hosts with candidates in the order of nova-scheduler.

    :param rows: the hosts, the best first.
    :param others: the options of ``[filter_scheduler]`` with which another host would be the
        first.
    :param notes: what the order leaves out because of the weighers that nova-scheduler loads.
    :param left_out: what the values of the hosts leave out.
    """

    rows: _Rows = ()
    others: _Rows = ()
    notes: Sequence[str] = ()
    left_out: Sequence[str] = ()

    @property
    def unknown(self) -> Sequence[str]:
        """Return the parts of a decision that the order does not know."""
        return (*self.notes, LEFT_OUT, *self.left_out) if self.rows else ()

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
    weighed: WeighedHosts,
) -> Ranking:
    """Return the hosts of an explanation with candidates, and what would change the first host.

    :param options: the values of ``[filter_scheduler]``.
    :param extra_specs: of the flavor of the server.
    :param weighed: what Nova's weighers know of these hosts.
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
    if in_use == REQUESTED_TO_CAPACITY:
        scores[in_use] |= _by_shapes(forests[in_use], names, weighed)
    traits = request_traits(options, extra_specs)
    soft = traits.of_hosts(summaries, explanation.answer.used_providers())
    raw = {**weighed.by_name(names), OURS: scores.pop(in_use)}
    if any(soft.values()):
        raw[SOFT_TRAITS] = {names[host]: sum(soft.get(host, {}).values()) for host in names}
    times = loaded_weighers(options.weight_classes).times
    # The soft traits are a part of the weigher of cpu-tiers.
    weighers = LoadedWeighers({**times, SOFT_TRAITS: times.get(OURS, 0)})
    multipliers = weighers.multipliers(options, raw)
    own = {name: _own_multipliers(weighed, name, weighers.times.get(name, 1)) for name in raw}
    explained = {names[host]: forests[in_use].explain(host)._asdict() for host in names}
    ranked = rank(raw, multipliers, own)
    rows = [
        {"host": row["host"], **explained[row["host"]], "score": raw[OURS][row["host"]], **row}
        for row in ranked
    ]
    winners = other_winners(raw, multipliers, scores, own)
    if not times.get(OURS):
        winners += _winner_with_ours(raw, multipliers, own, options, first=ranked[0]["host"])
    notes = notes_on_weighers(options, wants_ours=bool(soft_traits(extra_specs)))
    return Ranking(rows, winners, notes, weighed.unknown)


def _own_multipliers(weighed: WeighedHosts, weigher: str, times: int) -> dict[str, float]:
    """Return the multipliers that hosts have of their aggregates.

    :param times: how often nova-scheduler loads the weigher.
    """
    numbers = weighed.aggregates.multipliers(f"{weigher}_weight_multiplier")
    return {host: times * number for host, number in numbers.items()}


def _by_shapes(forest: Any, names: Mapping[str, str], weighed: WeighedHosts) -> dict[str, float]:
    """Return the lowest score by the shapes of the aggregates of a host, for hosts with a shape.

    :param forest: of ``requested-to-capacity``.
    """
    texts = weighed.aggregates.texts("resource_provider_shape")
    lowest: dict[str, float] = {}
    for host, name in names.items():
        for text in texts.get(name, ()):
            with suppress(ValueError):  # nova-scheduler leaves a malformed shape out, too
                score = forest.score_by(RequestedToCapacity(ShapeType()(text)), host)
                lowest[name] = min(score, lowest.get(name, score))
    return lowest


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
    raw: Weights,
    multipliers: Mapping[str, float],
    own: Weights,
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
    host = rank(raw, {**multipliers, **ours}, own)[0]["host"]
    value = ", ".join([*options.weight_classes, OUR_CLASS])
    return [{"option": "weight_classes", "value": value, "host": host}] if host != first else []
