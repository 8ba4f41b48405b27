"""``cpu-tiers explain``: why a server finds no host, and why it gets this host.

As in Nova (``nova/weights.py``), the raw weights of a weigher are normalized to numbers from 0 to
1 and multiplied by the multiplier of the weigher; the host with the largest sum wins. The weighers
of Nova here are the weighers whose data Placement has: free memory, CPUs and disk.
"""

import itertools
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

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
from cpu_tiers.model.names import DISK_GB, MEMORY_MB, PCPU, VCPU, is_resource_class
from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud.decisions import decisions_about, text_of
from cpu_tiers.tools.frame.cloud_source import aggregate_uuids
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    add_source_arguments,
    queries_of,
    read_source,
    tell_number_of_nodes,
    tell_of_plan,
    tell_unknown_additions,
    unknown_additions,
)
from cpu_tiers.tools.frame.terminal import (
    ProgressLine,
    count_of,
    join_names,
    shortened,
    wrapped,
)
from cpu_tiers.tools.placement.candidates import Explanation, explain
from cpu_tiers.tools.simulation.reasons import ClaimLimit, HostReason, Lack, named
from cpu_tiers.tools.simulation.server_queries import DISABLED_TRAIT, UNKNOWN
from cpu_tiers.tools.simulation.service_states import ServiceStates
from cpu_tiers.weights import SCORINGS, make_forest
from cpu_tiers.weights.forest import Summary
from cpu_tiers.weights.soft_traits import SoftTraits


def _down(states: ServiceStates) -> list[str]:
    """Return what is not known of hosts that are down."""
    return [f"hosts that are down: {states.unknown}"] if states.unknown else []


class Explain(NovaConfCommand, ShowCommand):
    """Explain why a server finds no host, or why nova-scheduler prefers a host.

    The command asks Placement for the candidates of the request that nova-scheduler makes, and
    again without each constraint alone: a resource class, a trait, a port, a NUMA node of the
    server. It changes nothing. Exit status: 0 with candidates, 3 without.

    With --decisions, the command shows what nova-scheduler decided about a server at the time.
    """

    formatter_namespace = "cpu_tiers.formatter.explain"
    formatter_default = "text"

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_source_arguments(parser)
        add_request_arguments(parser)
        add_aggregate_argument(parser)
        parser.add_argument(
            "--decisions",
            metavar="FILE",
            type=Path,
            help="with --server: show what nova-scheduler recorded about the server in this file, "
            "and ask nobody",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        if parsed_args.decisions:
            return self._recorded(parsed_args)
        conf = self.nova_conf()
        cloud = self.cloud_source(parsed_args, conf)
        self.find_tiers(conf, cloud)
        server = read_source(parsed_args, conf, cloud)
        aggregates = aggregate_uuids(parsed_args.aggregate, cloud.services)
        queries = queries_of(conf, server, aggregates)
        states = cloud.service_states
        with ProgressLine("asking Placement") as progress, cloud.placement() as client:
            tell = partial(progress.tell_number, "providers")
            explanation = explain(client, queries, tell, states)
            if explanation.names and not explanation.candidates:
                tell_number_of_nodes(client, conf, server, aggregates)
                lacking = (
                    [named(*lack) for lack in reason.lacks.items()]
                    for reason in explanation.reasons.values()
                )
                tell_of_plan(server.flavor, queries, lacking)
        tell_unknown_additions(conf)
        self.status = 0 if explanation.candidates else FOUND
        traits = request_traits(conf.filter_scheduler, server.flavor.extra_specs)
        rows, others = _ranking(explanation, queries.first[0], conf.filter_scheduler, traits)
        nearest, show_all = explanation.nearest(), parsed_args.all
        wants_ours = bool(soft_traits(server.flavor.extra_specs))
        notes = notes_on_weighers(conf.filter_scheduler, wants_ours=wants_ours) if rows else []
        on_ranking = [*notes, *LEFT_OUT] if rows else []
        unknown = [*queries.left_out, *UNKNOWN, *unknown_additions(conf), *_down(states)]
        unknown += on_ranking
        return (
            ("hosts", "candidates", "without", "nearest", "ranking", "other_winners", "unknown"),
            (
                FormattedValue(
                    len(explanation.names), lambda _: _summary(explanation, states, queries.note)
                ),
                FormattedValue(len(explanation.candidates), lambda _: ""),
                FormattedValue(
                    [{"constraint": c, "hosts": n} for c, n in explanation.without.items()],
                    lambda _: _without(explanation),
                ),
                FormattedValue(
                    [{"host": host, **_json(reason)} for host, reason in nearest],
                    lambda _: _nearest(nearest, show_all=show_all),
                ),
                FormattedValue(rows, partial(_ranking_text, notes=notes, show_all=show_all)),
                FormattedValue(others, _others_text),
                FormattedValue(unknown, partial(_unknown_text, show_all=show_all)),
            ),
        )

    def _recorded(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        if not parsed_args.server:
            self._parser.error("--decisions FILE needs --server UUID")
        decisions = decisions_about(parsed_args.decisions, parsed_args.server)
        self.status = 0 if decisions else FOUND
        text = text_of(decisions) or "The file has no decision about the server."
        return ("decisions",), (FormattedValue(decisions, lambda _: text),)


def _summary(explanation: Explanation, states: ServiceStates, not_looked_at: str) -> str:
    if not explanation.names:
        return wrapped(f"Placement has no compute hosts{_not_counted(explanation)}.")
    reasons = explanation.reasons.values()
    lacking = Counter(_kind(*part) for reason in reasons for part in reason.lacks.items())
    parts = [
        f"{count} {one if count == 1 else several} {what}"
        for (one, several, what), count in lacking.most_common()
    ]
    if changed := sum(not reason.lacks for reason in reasons):
        parts.append(f"{changed} got room meanwhile")
    counts = f"{len(explanation.candidates)} of {len(explanation.names)} hosts"
    counts = f"{counts}: {', '.join(parts)}" if parts else f"{counts} can take it"
    note = states.note + not_looked_at if explanation.candidates else ""
    return wrapped(f"{counts}{note}{_not_counted(explanation)}")


def _not_counted(explanation: Explanation) -> str:
    """Return the hosts that are not in the numbers of an explanation, to follow the numbers."""
    strangers, others = explanation.strangers, explanation.others
    parts = []
    if strangers:
        names = join_names(strangers)
        parts.append(f"{count_of(len(strangers), 'provider')} without nova-compute ({names})")
    if others:
        parts.append(f"{count_of(others, 'host')} of another kind")
    return f"; not counted: {', '.join(parts)}" if parts else ""


def _without(explanation: Explanation) -> str:
    lines = [
        wrapped(f"without {name}: {count_of(count, 'host')}", indent="  ")
        for name, count in explanation.without.items()
        if count != len(explanation.candidates) and name not in _OF_NOVA
    ]
    if not lines:
        several = "No host gets a candidate if a single constraint is left out."
        return several if explanation.reasons else ""
    return "\n".join(["Hosts with candidates if a constraint is left out:", *lines])


def _nearest(hosts: Iterable[tuple[str, HostReason]], *, show_all: bool) -> str:
    lines = [wrapped(f"{host} {_reason(reason)}", indent="  ") for host, reason in hosts]
    lines = shortened(lines, show_all=show_all)
    return "\n".join(["Hosts without candidates that lack least:", *lines]) if lines else ""


def _json(reason: HostReason) -> dict[str, object]:
    lacks = {
        name: lack.to_json() if isinstance(lack, ClaimLimit) else lack
        for name, lack in reason.lacks.items()
    }
    return {"lacks": lacks, **({"instead": reason.instead} if reason.instead else {})}


def _kind(name: str, lack: Lack) -> tuple[str, str, str]:
    """Return the predicates of one host and of several hosts that a constraint excludes."""
    if isinstance(lack, ClaimLimit):
        return "refuses", "refuse", f"{lack.asked} {name} in one claim ({lack.limit})"
    if name == f"!{DISABLED_TRAIT}":
        return "is", "are", "disabled"
    return ("has", "have", name[1:]) if name.startswith("!") else ("lacks", "lack", name)


def _reason(reason: HostReason) -> str:
    parts = []
    for name, lack in reason.lacks.items():
        verb, _, what = _kind(name, lack)
        if isinstance(lack, ClaimLimit):
            what = f"{what[:-1]} {lack.value})"
        elif lack > 1:
            what = f"{lack} {name}"
        parts.append(f"{verb} {what}")
    others = [name for name in reason.instead if is_resource_class(name)]
    return ", ".join(parts) + (f" (or {', or '.join(others)})" if others else "")


def _unknown_text(lines: Sequence[str], *, show_all: bool) -> str:
    if not show_all:
        return wrapped("Only nova-scheduler knows more; --all lists what is left out here.")
    return "\n".join(["Not known here:", *(wrapped(line, indent="  ") for line in lines)])


SOFT_TRAITS = "resource_provider_trait"
"""The name of the part of the weigher that follows from preferred and avoided traits."""

OF_NOVA: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"ram": (MEMORY_MB,), "cpu": (VCPU, PCPU), "disk": (DISK_GB,)}
)
"""Weighers of Nova, with the resource classes whose free amounts are the raw weight."""

_OF_NOVA = frozenset(f"!{name}" for name in (NODE_TRAIT, NO_NUMA_TRAIT))
"""Constraints that nobody can leave out of a request."""

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


def _ranking(
    explanation: Explanation, query: CandidateQuery, options: cfg.ConfigOpts, traits: SoftTraits
) -> tuple[_Rows, _Rows]:
    """Return the candidate hosts, the best first, and what would change the first host."""
    hosts, names = sorted(explanation.candidates), explanation.names
    if not hosts:
        return [], []
    summaries = explanation.answer.provider_summaries
    scorings = configured_scorings(options)
    forests = {
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
    scores = {
        name: {names[host]: forest.score(host) for host in hosts}
        for name, forest in forests.items()
    }
    in_use = options.resource_provider_scoring
    free = {names[host]: amounts for host, amounts in free_amounts(summaries, hosts).items()}
    raw = {**raw_weights(free), OURS: scores.pop(in_use)}
    soft = traits.of_hosts(summaries, explanation.answer.used_providers())
    if any(soft.values()):
        raw[SOFT_TRAITS] = {names[host]: sum(soft.get(host, {}).values()) for host in hosts}
    times = loaded_weighers(options.weight_classes).times
    # The soft traits are a part of the weigher of cpu-tiers.
    weighers = LoadedWeighers({**times, SOFT_TRAITS: times.get(OURS, 0)})
    multipliers = weighers.multipliers(options, raw)
    explained = {names[host]: forests[in_use].explain(host) for host in hosts}
    ranked = rank(raw, multipliers)
    rows = [{"host": row["host"], **explained[row["host"]]._asdict(), **row} for row in ranked]
    winners = other_winners(raw, multipliers, scores)
    if not times.get(OURS):
        names_of_ours = [name for name in (OURS, SOFT_TRAITS) if name in raw]
        ours = {name: options[f"{name}_weight_multiplier"] for name in names_of_ours}
        first = rank(raw, multipliers | ours)[0]["host"]
        if first != ranked[0]["host"]:
            value = ", ".join([*options.weight_classes, OUR_CLASS])
            winners.append({"option": "weight_classes", "value": value, "host": first})
    return rows, winners


def _ranking_text(rows: _Rows, *, notes: Iterable[str], show_all: bool) -> str:
    lines = []
    for number, row in enumerate(rows, start=1):
        parts = ", ".join(f"{name} {part:.4f}" for name, part in row["weighers"].items() if part)
        margin = row["margin"]
        before = "" if margin is None else f", {margin:.4f} before the next host"
        line = f"{number}. {row['host']}: weight {row['weight']:.4f}"
        line += f" ({parts})" if parts else ""
        lines.append(wrapped(f"{line}{before}; score {row['score']:.4f}", indent="  "))
    lines = shortened(lines, show_all=show_all)
    said = [wrapped(f"But {note}.") for note in notes]
    return "\n".join(["Candidates, best first:", *lines, *said]) if lines else ""


def _others_text(others: _Rows) -> str:
    return "\n".join(
        wrapped(f"With [filter_scheduler] {o['option']} = {o['value']}, {o['host']} is first.")
        for o in others
    )
