"""``cpu-tiers explain``: why a server finds no host, and why it gets this host."""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path

from cpu_tiers.model.numa import NO_NUMA_TRAIT, NODE_TRAIT
from cpu_tiers.tools.cloud.decisions import decisions_about, text_of
from cpu_tiers.tools.cloud.ranking import Ranking, ranking
from cpu_tiers.tools.cloud.weighed_hosts import weighed_hosts
from cpu_tiers.tools.cloud_model.service_states import ServiceStates
from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.frame.formatting import DOCUMENTS, FormattedValue, ShowCommand, TextFormatter
from cpu_tiers.tools.frame.notes_on_answers import unknown_additions
from cpu_tiers.tools.frame.nova_conf_command import FOUND, NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_source_arguments
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    queries_of,
    read_source,
    tell_number_of_nodes,
    tell_of_plan,
)
from cpu_tiers.tools.frame.terminal import ProgressLine, count_of, join_names, shortened, wrapped
from cpu_tiers.tools.placement.explanation import Explanation, explain
from cpu_tiers.tools.reasons.host_reason import ClaimLimit, HostReason, Lack
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT, UNKNOWN

_OF_NOVA = frozenset(f"!{name}" for name in (NODE_TRAIT, NO_NUMA_TRAIT))
"""Constraints that nobody can leave out of a request."""


def _down(states: ServiceStates) -> list[str]:
    """Return the unknown parts about hosts that are down."""
    return [f"hosts that are down: {states.unknown}"] if states.unknown else []


class Explain(NovaConfCommand, ShowCommand):
    """Explain why a server finds no host, or why nova-scheduler prefers a host.

    The command asks Placement for the candidates of the request that nova-scheduler makes, and
    again without each constraint alone: a resource class, a trait, a port, a NUMA node of the
    server. It changes nothing. Exit status: 0 with candidates, 3 without.

    With --decisions, the command shows what nova-scheduler decided about a server at the time.
    """

    formats = DOCUMENTS | {"text": TextFormatter}
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
        wanted = parsed_args.aggregate
        aggregates = wanted and aggregate_uuids(wanted, cloud.nova)
        queries = queries_of(conf, server, aggregates, cloud)
        states = cloud.service_states
        with ProgressLine("asking Placement") as progress, cloud.placement() as client:
            tell = partial(progress.tell_number, "providers")
            explanation = explain(client, queries, tell, states)
            if explanation.names and not explanation.candidates:
                tell_number_of_nodes(client, conf, server, aggregates, cloud)
                if explanation.can_be_freed:
                    tell_of_plan(server.flavor)
            weighed = weighed_hosts(cloud, client, explanation)
        explanation = _by_name(explanation, cloud, set(chain(*wanted)) - set(chain(*aggregates)))
        self.status = 0 if explanation.candidates else FOUND
        order = Ranking()
        if explanation.candidates:
            specs = server.flavor.extra_specs
            order = ranking(explanation, queries.queries[0], conf.filter_scheduler, specs, weighed)
        nearest, show_all = explanation.nearest(), parsed_args.all
        not_looked_at = [
            *(*queries.left_out, *unknown_additions(conf, cloud, server.image)),
            *weighed.left_out,
        ]
        unknown = [*not_looked_at, *UNKNOWN, *_down(states)]
        return (
            ("hosts", "candidates", "without", "nearest", "ranking", "other_winners", "unknown"),
            (
                FormattedValue(
                    len(explanation.names), lambda _: _summary(explanation, states, not_looked_at)
                ),
                FormattedValue(len(explanation.candidates), lambda _: ""),
                FormattedValue(
                    [{"constraint": c, "hosts": n} for c, n in explanation.without.items()],
                    lambda _: _without(explanation),
                ),
                FormattedValue(
                    [{"host": host, **_json(reason)} for host, reason in nearest],
                    lambda _: _nearest(nearest, queries.classes, show_all=show_all),
                ),
                FormattedValue(
                    order.rows, lambda rows: order.text(show_all=show_all) if rows else ""
                ),
                FormattedValue(order.others, lambda others: order.others_text() if others else ""),
                FormattedValue(
                    [*unknown, *order.unknown], partial(_unknown_text, show_all=show_all)
                ),
            ),
        )

    def _recorded(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        if not parsed_args.server:
            self._parser.error("--decisions FILE needs --server UUID")
        decisions = decisions_about(parsed_args.decisions, parsed_args.server)
        self.status = 0 if decisions else FOUND
        text = text_of(decisions) or "The file has no decision about the server."
        return ("decisions",), (FormattedValue(decisions, lambda _: text),)


def _by_name(explanation: Explanation, cloud: CloudSource, asked: Collection[str]) -> Explanation:
    """Return an explanation whose constraints have the names of aggregates for their uuids.

    :param asked: the names of the arguments. Nova is asked if there are any, or if it was asked
        for isolated aggregates.
    """
    isolated = any(name.startswith("!member_of=") for name in explanation.without)
    if not asked and not isolated:
        return explanation
    name = cloud.aggregates.names_in
    return replace(
        explanation,
        without={name(constraint): count for constraint, count in explanation.without.items()},
        reasons={
            host: reason._replace(lacks={name(n): lack for n, lack in reason.lacks.items()})
            for host, reason in explanation.reasons.items()
        },
    )


def _summary(explanation: Explanation, states: ServiceStates, not_looked_at: Sequence[str]) -> str:
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
    left_out = f"; not looked at: {', '.join(not_looked_at)}" if not_looked_at else ""
    note = states.note + left_out if explanation.candidates else ""
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


def _nearest(
    hosts: Iterable[tuple[str, HostReason]], classes: Collection[str], *, show_all: bool
) -> str:
    """Return the hosts that lack least.

    :param classes: the resource classes that the server requests.
    """
    lines = [wrapped(f"{host} {_reason(reason, classes)}", indent="  ") for host, reason in hosts]
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
    if name.startswith("aggregate "):
        return "is not in", "are not in", name
    if name.startswith("!aggregate "):
        return "is in", "are in", f"the isolated {name[1:]}"
    return ("has", "have", name[1:]) if name.startswith("!") else ("lacks", "lack", name)


def _reason(reason: HostReason, classes: Collection[str]) -> str:
    parts = []
    for name, lack in reason.lacks.items():
        verb, _, what = _kind(name, lack)
        if isinstance(lack, ClaimLimit):
            what = f"{what[:-1]} {lack.value})"
        elif lack > 1:
            what = f"{lack} {name}"
        parts.append(f"{verb} {what}")
    others = [name for name in reason.instead if name in classes]
    return ", ".join(parts) + (f" (or {', or '.join(others)})" if others else "")


def _unknown_text(lines: Sequence[str], *, show_all: bool) -> str:
    if not show_all:
        return wrapped("Only nova-scheduler knows more; --all lists what is left out here.")
    return "\n".join(["Not known here:", *(wrapped(line, indent="  ") for line in lines)])
