"""``cpu-tiers explain``: why a server finds no host, and why it gets this host."""

import json
import logging
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from oslo_config import cfg

from cpu_tiers.conf.weigher import class_weights, configured_scorings, request_traits
from cpu_tiers.errors import CpuTiersError
from cpu_tiers.model.names import is_resource_class
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.frame.cloud_source import aggregate_uuids
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    add_source_arguments,
    queries_of,
    read_source,
    tell_number_of_nodes,
    tell_unknown_additions,
    unknown_additions,
)
from cpu_tiers.tools.frame.terminal import ProgressLine, shortened, wrapped
from cpu_tiers.tools.placement.candidates import Explanation, explain
from cpu_tiers.tools.simulation.reasons import ClaimLimit, HostReason, Lack
from cpu_tiers.translators.server_queries import UNKNOWN
from cpu_tiers.weights import SCORINGS, HostScore, make_forest
from cpu_tiers.weights.ranking import (
    LEFT_OUT,
    OURS,
    SOFT_TRAITS,
    RankedHost,
    free_amounts,
    other_winners,
    rank,
    raw_weights,
)
from cpu_tiers.weights.soft_traits import SoftTraits

LOG = logging.getLogger(__name__)

NO_CANDIDATES = 3
"""The exit status if no host has a candidate."""


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
        with ProgressLine("asking Placement") as progress, cloud.placement() as client:
            explanation = explain(client, queries, partial(progress.tell_number, "providers"))
            if explanation.names and not explanation.candidates:
                tell_number_of_nodes(client, conf, server, aggregates)
        tell_unknown_additions(conf)
        self.status = 0 if explanation.candidates else NO_CANDIDATES
        traits = request_traits(conf.filter_scheduler, server.flavor.extra_specs)
        ranking = _Ranking(explanation, queries.first[0], conf.filter_scheduler, traits)
        nearest, show_all = explanation.nearest(), parsed_args.all
        unknown = [*UNKNOWN, *unknown_additions(conf), *(LEFT_OUT if ranking.rows else ())]
        return (
            ("hosts", "candidates", "without", "nearest", "ranking", "other_winners", "unknown"),
            (
                FormattedValue(len(explanation.names), lambda _: _summary(explanation)),
                FormattedValue(len(explanation.candidates), lambda _: ""),
                FormattedValue(
                    [{"constraint": c, "hosts": n} for c, n in explanation.without.items()],
                    lambda _: _without(explanation),
                ),
                FormattedValue(
                    [{"host": host, **_json(reason)} for host, reason in nearest],
                    lambda _: _nearest(nearest, show_all=show_all),
                ),
                FormattedValue(ranking.rows, lambda _: ranking.text(show_all=show_all)),
                FormattedValue(ranking.others, _others_text),
                FormattedValue(unknown, partial(_unknown_text, show_all=show_all)),
            ),
        )

    def _recorded(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        if not parsed_args.server:
            self._parser.error("--decisions FILE needs --server UUID")
        decisions = decisions_about(parsed_args.decisions, parsed_args.server)
        self.status = 0 if decisions else NO_CANDIDATES
        text = text_of(decisions) or "The file has no decision about the server."
        return ("decisions",), (FormattedValue(decisions, lambda _: text),)


def _summary(explanation: Explanation) -> str:
    """Return how many hosts have candidates, and how many lack what, in the first line."""
    if not explanation.names:
        return "Placement has no compute hosts."
    reasons = explanation.reasons.values()
    lacking = Counter(_kind(*part) for reason in reasons for part in reason.lacks.items())
    parts = [
        f"{count} {one if count == 1 else several} {what}"
        for (one, several, what), count in lacking.most_common()
    ]
    if changed := sum(not reason.lacks for reason in reasons):
        parts.append(f"{changed} got room meanwhile")
    counts = f"{len(explanation.candidates)} of {len(explanation.names)} hosts"
    return wrapped(f"{counts}: {', '.join(parts)}" if parts else f"{counts} can take it")


def _without(explanation: Explanation) -> str:
    """Return the number of hosts without each constraint that costs hosts."""
    lines = [
        wrapped(f"without {name}: {count} hosts", indent="  ")
        for name, count in explanation.without.items()
        if count != len(explanation.candidates)
    ]
    if not lines:
        several = "No host gets a candidate if a single constraint is left out."
        return several if explanation.reasons else ""
    return "\n".join(["Hosts with candidates if a constraint is left out:", *lines])


def _nearest(hosts: Iterable[tuple[str, HostReason]], *, show_all: bool) -> str:
    """Return the hosts with the fewest lacking resources."""
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
    return ("has", "have", name[1:]) if name.startswith("!") else ("lacks", "lack", name)


def _reason(reason: HostReason) -> str:
    """Return why a host has no candidate, and which amounts would have helped as well."""
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


class _Ranking:
    """The candidate hosts in the order of nova-scheduler, with the parts of their weights."""

    def __init__(
        self,
        explanation: Explanation,
        query: CandidateQuery,
        options: cfg.ConfigOpts,
        traits: SoftTraits,
    ) -> None:
        self._names = explanation.names
        self._ranked: Sequence[RankedHost] = ()
        self.rows: list[dict[str, Any]] = []
        self.others: list[dict[str, str]] = []
        hosts = sorted(explanation.candidates)
        if not hosts:
            return
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
            name: {host: forest.score(host) for host in hosts} for name, forest in forests.items()
        }
        in_use = options.resource_provider_scoring
        free = free_amounts(summaries, hosts)
        weights = {**raw_weights(free), OURS: scores.pop(in_use)}
        soft = traits.of_hosts(summaries)
        if any(soft.values()):
            weights[SOFT_TRAITS] = {host: sum(soft.get(host, {}).values()) for host in hosts}
        raw = self._named(weights)
        multipliers = {name: options[f"{name}_weight_multiplier"] for name in raw}
        explained = {explanation.names[host]: forests[in_use].explain(host) for host in hosts}
        self._ranked = rank(raw, multipliers)
        self.rows = [_row(host, explained[host.host]) for host in self._ranked]
        self.others = [
            winner._asdict() for winner in other_winners(raw, multipliers, self._named(scores))
        ]

    def _named(self, weights: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
        return {
            key: {self._names[host]: weight for host, weight in of_hosts.items()}
            for key, of_hosts in weights.items()
        }

    def text(self, *, show_all: bool) -> str:
        """Return a line for each host."""
        lines = []
        for number, (host, row) in enumerate(zip(self._ranked, self.rows, strict=True), start=1):
            parts = ", ".join(f"{name} {part:.4f}" for name, part in host.parts.items() if part)
            margin = "" if host.margin is None else f", {host.margin:.4f} before the next host"
            line = f"{number}. {host.host}: weight {host.weight:.4f}"
            line += f" ({parts})" if parts else ""
            lines.append(wrapped(f"{line}{margin}; score {row['score']:.4f}", indent="  "))
        lines = shortened(lines, show_all=show_all)
        return "\n".join(["Candidates, best first:", *lines]) if lines else ""


def _others_text(others: Sequence[Mapping[str, str]]) -> str:
    """Return a line for each option with which another host would be the first."""
    return "\n".join(
        wrapped(f"With [filter_scheduler] {o['option']} = {o['value']}, {o['host']} is first.")
        for o in others
    )


def _row(host: RankedHost, score: HostScore) -> dict[str, Any]:
    return {
        "host": host.host,
        **score._asdict(),
        "weight": host.weight,
        "weighers": dict(host.parts),
        "margin": host.margin,
    }


Decision = Mapping[str, Any]
"""A document as ``docs/admin/decision-record.rst`` describes it."""


class NoDecisions(CpuTiersError):
    """The file with the decisions cannot be read."""


def decisions_about(file: Path, server: str) -> list[Decision]:
    """Return the decisions about a server, the oldest first, also those of the older file.

    A line that is no decision, such as a line that is being written, is left out with a warning.

    :param server: the uuid of the server.
    :raises NoDecisions: the file cannot be read.
    """
    older = file.with_name(f"{file.name}.1")
    files = [older, file] if older.exists() else [file]
    decisions = [decision for path in files for decision in _decisions(path, server)]
    return sorted(decisions, key=lambda decision: str(decision["time"]))


def _decisions(file: Path, server: str) -> Iterator[Decision]:
    unreadable = 0
    try:
        with file.open(encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if server not in line:  # faster than to parse each line
                    continue
                try:
                    document = json.loads(line)
                    text_of([document])  # a document that lacks a key is no decision
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    unreadable += 1
                    continue
                if server in document["servers"]:
                    yield document
    except OSError as error:
        raise NoDecisions(f"the decisions cannot be read: {error}") from error
    if unreadable:
        LOG.warning("%s: %s lines about the server are no decisions", file, unreadable)


def text_of(decisions: Sequence[Decision]) -> str:
    """Return the decisions for a terminal."""
    return "\n\n".join("\n".join(_lines(decision)) for decision in decisions)


def _lines(decision: Decision) -> Iterator[str]:
    yield wrapped(
        f"{decision['time']} {decision['request_id']}: flavor {decision['flavor']},"
        f" {decision['seconds']} s"
    )
    candidates = decision["candidates"]
    yield wrapped(f"hosts with candidates: {_hosts(candidates)}", indent="  ")
    for number, of_server in enumerate(decision["rounds"], start=1):
        if len(decision["rounds"]) > 1:
            yield f"  round {number}, server {of_server['server']}:"
        yield from _of_round(of_server)
    for server, selected in zip(decision["servers"], decision["selected"], strict=False):
        others = ", ".join(selected["alternates"]) or "none"
        yield wrapped(f"{server}: {selected['host']} (alternates: {others})", indent="  ")
    if decision["fault"]:
        yield wrapped(f"fault: {decision['fault']}", indent="  ")


def _of_round(of_server: Mapping[str, Any]) -> Iterator[str]:
    for said in of_server["filters"]:
        if said["removed"]["number"]:
            text = f"{said['filter']} left {said['left']}, removed {_hosts(said['removed'])}"
            yield wrapped(text, indent="  ")
    for host in of_server["weights"]:
        parts = ", ".join(f"{name} {part:+.4g}" for name, part in host["parts"].items() if part)
        yield wrapped(f"weight of {host['host']}: {host['weight']:.4g} ({parts})", indent="  ")
    for claim in of_server["claims"]:
        outcome = "granted" if claim["granted"] else "refused"
        yield wrapped(f"claim {outcome}: {', '.join(claim['providers'])}", indent="  ")


def _hosts(hosts: Mapping[str, Any]) -> str:
    """Return the number and the names of hosts."""
    more = hosts["number"] - len(hosts["names"])
    names = ", ".join(hosts["names"]) + (f" and {more} more" if more > 0 else "")
    return f"{hosts['number']} ({names})" if hosts["number"] else "0"
