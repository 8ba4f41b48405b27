"""``cpu-tiers simulate``: the same requests under several weigher settings, side by side."""

import itertools
import logging
import math
import random
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from oslo_config import cfg

from cpu_tiers.conf.weigher import class_weights, configured_scorings
from cpu_tiers.conf.weight_classes import loaded_weighers
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.tools.cloud.simulation_text import policy_values, print_simulation, tier_names
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.cloud_source import read_snapshot, warn_of_left_out_flavors
from cpu_tiers.tools.frame.documents import read_flavors, read_text
from cpu_tiers.tools.frame.formatting import TEXT_FORMATS, FormattedValue, ListCommand
from cpu_tiers.tools.frame.notes_on_answers import (
    tell_left_out,
    tell_notes_on_weighers,
    tell_unknown_additions,
    tell_unknown_states,
)
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.frame.server_request import add_numa_argument, queries_of, request_of
from cpu_tiers.tools.frame.terminal import ProgressLine, count_of, join_names
from cpu_tiers.tools.reasons.reasons import ANCHOR, is_without_anchor, knows_nodes
from cpu_tiers.tools.simulation.comparison import ENOUGH_SEEDS, compare, verdict
from cpu_tiers.tools.simulation.policies import NOVA, Policy
from cpu_tiers.tools.simulation.requests import Arrival, draw_arrivals, read_arrivals
from cpu_tiers.tools.simulation.run import Demand, Outcome, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.tools.tiers.tier import Tier, tier_of_amounts
from cpu_tiers.translators import ServerRequest

LOG = logging.getLogger(__name__)


Streams = Sequence[Sequence[Arrival]]
"""The requests of each seed."""

Demands = Mapping[str, Demand]
"""What the servers of each flavor request, by the name of the flavor."""


def _read_requests(
    parsed_args: Namespace, conf: cfg.ConfigOpts, snapshot: Snapshot, tiers: Sequence[Tier]
) -> tuple[Streams, Demands]:
    """Read or draw the requests; log the flavors with faults, which are left out.

    :raises InvalidInput: with every fault of the arguments and of the table, or with those of
        the flavors if no flavor is left.
    """
    faults = FaultList()  # of flavors
    flavors = _flavors(parsed_args, snapshot, faults)
    table = _table(parsed_args, flavors, are_all=not faults.faults)
    shares = _shares(parsed_args.mix, flavors) if table is None else {}
    wanted = shares if table is None else {arrival.flavor for arrival in table}
    used = [flavor for name, flavor in flavors.items() if name in wanted]
    demands = _demands(parsed_args, conf, used, tiers, faults)
    if not demands:
        faults.raise_if_any()
    warn_of_left_out_flavors(faults)
    if table is not None:
        return [_requests_of(table, demands)] * parsed_args.seeds, demands
    shares = {name: share for name, share in shares.items() if name in demands}
    streams = [
        # Not for secrets: a seed repeats a simulation.
        draw_arrivals(parsed_args.draw, shares, parsed_args.stay, random.Random(seed))  # noqa: S311
        for seed in range(parsed_args.seeds)
    ]
    return streams, demands


def _without_unusable_hosts(
    snapshot: Snapshot, demands: Demands
) -> tuple[Snapshot, Collection[str]]:
    """Return the snapshot without the hosts that lack an anchor, and the closed hosts.

    The log names both. Placement answers with candidates of hosts whose nova-compute is down or
    missing, and nova-scheduler closes these hosts. Requests forbid the trait of a disabled host.
    """
    states = snapshot.service_states()
    tell_unknown_states(states)
    without_anchor = dict[str, str]()
    if knows_nodes(query for demand in demands.values() for query in demand.request.queries):
        trees = ProviderIndex(snapshot.providers).trees()
        without_anchor = {root: ANCHOR for root, tree in trees.items() if is_without_anchor(tree)}
    lacking = {**states.lacking, **without_anchor}
    for constraint in sorted(set(lacking.values())):
        roots = [root for root, name in lacking.items() if name == constraint]
        _, names = snapshot.without_trees(roots)
        hosts = f"{count_of(len(names), 'host')} ({join_names(names)})"
        LOG.warning("Left out for lack of %s: %s", constraint, hosts)
    return snapshot.without_trees(without_anchor)[0], states.lacking


def _flavors(
    parsed_args: Namespace, snapshot: Snapshot, faults: FaultList
) -> Mapping[str, Flavor]:
    """Return the flavors of the file or else of the snapshot, by name."""
    path = parsed_args.flavors
    flavors = tuple(read_flavors(path, faults)) if path else snapshot.flavors
    if not flavors:
        faults.raise_if_any()
        where = path or parsed_args.snapshot
        raise InvalidInput.of(where, "no flavors", "give the flavors with --flavors")
    return {flavor.name: flavor for flavor in flavors}


def _table(
    parsed_args: Namespace, flavors: Mapping[str, Flavor], *, are_all: bool
) -> list[Arrival] | None:
    """Return the requests of the table; ``None`` if requests are drawn.

    :param are_all: whether no flavor was left out, so that a name of no flavor is a fault.
    """
    path = parsed_args.requests
    if not path:
        return None
    lines = read_text(path).splitlines()
    return read_arrivals(lines, list(flavors) if are_all else None, where=path)


def _requests_of(table: Iterable[Arrival], demands: Demands) -> list[Arrival]:
    """Return the requests for flavors that are not left out, and log the number of the others."""
    table = list(table)
    others = Counter(arrival.flavor for arrival in table if arrival.flavor not in demands)
    if others:
        LOG.warning(
            "Requests left out, whose flavors are left out or not known: %d (%s)",
            others.total(),
            ", ".join(sorted(others)),
        )
    return [arrival for arrival in table if arrival.flavor in demands]


def _shares(mix: Sequence[str], flavors: Mapping[str, Flavor]) -> Mapping[str, float]:
    faults = FaultList()
    shares = {}
    for text in mix:
        name, _, number = text.rpartition("=")
        try:
            shares[name] = float(number)
        except ValueError:
            shares[name] = 0.0
        if name not in flavors or not 0 < shares[name] < float("inf"):
            faults.add(f"--mix {text}", f"got {text!r}", "give a flavor, = and a number above 0")
    faults.raise_if_any()
    return shares or dict.fromkeys(flavors, 1.0)


def _demands(
    parsed_args: Namespace,
    conf: cfg.ConfigOpts,
    flavors: Iterable[Flavor],
    tiers: Sequence[Tier],
    faults: FaultList,
) -> Demands:
    """Return what servers of each flavor request, as nova-scheduler would ask for it.

    :param faults: collects the faults of flavors that are left out.
    """
    demands = {}
    for flavor in flavors:
        server = request_of(conf, flavor, parsed_args.numa)
        with faults:
            queries = queries_of(conf, server)
            tell_left_out(flavor, queries.left_out)
            has_nodes = bool(server.nodes)
            plain = queries_of(conf, server._replace(query_numa=False)) if has_nodes else None
            weighed = plain.queries[0] if plain else None
            request = replace(queries, weighed=weighed)
            demands[flavor.name] = Demand(request, effective_shares(flavor), _tier(server, tiers))
    return demands


def _tier(server: ServerRequest, tiers: Sequence[Tier]) -> str:
    """Return the name of a server's tier; empty without a tier or without shared vCPUs."""
    shares, vcpus = effective_shares(server.flavor), server.cpus.shared
    if shares is None or not vcpus:
        return ""
    return tier_of_amounts([{VCPU: vcpus, VCPU_SHARES: shares.requested(vcpus)}], tiers)


class Simulate(NovaConfCommand, ListCommand):
    """List how many servers of the same requests each policy takes, and the rest of the cloud.

    A policy is the name of a scoring, or nova for Nova's weighers without a scoring, and
    multipliers: boring=2.0,cpu=0 has the scoring boring with the multiplier 2.0 and no weigher of
    CPUs. nova.conf has the other multipliers. The text says first which policy refuses the least,
    and whether the seeds agree. A flavor with faults is left out.
    """

    all_help = "show all flavors of which servers were refused, and all faults of a refusal"
    formats = TEXT_FORMATS
    formatter_default = "text"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "snapshot", metavar="SNAPSHOT", help="file of `cpu-tiers cloud snapshot`"
        )
        requests = parser.add_mutually_exclusive_group(required=True)
        requests.add_argument(
            "--requests",
            metavar="FILE",
            help="CSV table with the columns time, flavor and, for servers that depart, lifetime",
        )
        requests.add_argument(
            "--draw", type=_count, metavar="N", help="draw N requests from the flavors"
        )
        parser.add_argument(
            "--mix",
            action="append",
            default=[],
            metavar="FLAVOR=SHARE",
            help="with --draw, how often a flavor is drawn relative to others; may be repeated"
            " (default: all flavors equally)",
        )
        parser.add_argument(
            "--stay",
            type=_above_zero,
            metavar="N",
            help="with --draw, how many requests come on average while a server stays"
            " (default: servers stay for ever)",
        )
        parser.add_argument(
            "--flavors",
            metavar="FLAVORS.json",
            help="output of `openstack flavor list --long -f json`, instead of the snapshot's",
        )
        _add_policy_arguments(parser)
        add_tier_argument(parser)
        parser.add_argument(
            "--html", metavar="FILE", help="also write a page with charts into this file"
        )
        add_numa_argument(parser)

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        if parsed_args.html:
            # Before the simulation, which may take hours.
            from cpu_tiers.tools.page.simulation import simulation_page
        conf = self.nova_conf()
        faults = FaultList()
        policies = list(_policies(parsed_args.policy, conf.filter_scheduler, faults))
        snapshot = faults.read(read_snapshot, parsed_args.snapshot)
        tiers = faults.read(read_tiers, parsed_args) or ()
        faults.raise_if_any()
        assert snapshot is not None, "a fault was raised"  # noqa: S101  # narrows the type
        streams, demands = _read_requests(parsed_args, conf, snapshot, tiers)
        snapshot, closed = _without_unusable_hosts(snapshot, demands)
        tell_unknown_additions(conf)
        tell_notes_on_weighers(conf)
        results = _run(parsed_args, snapshot, closed, policies, streams, demands)
        texts = verdict(results, has_same_requests=bool(parsed_args.requests))
        if parsed_args.html:
            page = simulation_page(results, tier_names(demands), texts).html()
            write_output(parsed_args.html, page.encode(), private=True)
        comparison = compare(results)
        rows = [
            policy_values(name, outcomes, demands, comparison)
            for name, outcomes in results.items()
        ]
        parsed_args.print_text = partial(
            print_simulation, policies=rows, verdict=texts, show_all=parsed_args.all
        )
        return tuple(rows[0]), [
            [FormattedValue(v, str) if isinstance(v, Mapping) else v for v in row.values()]
            for row in rows
        ]


def _run(
    parsed_args: Namespace,
    snapshot: Snapshot,
    closed: Collection[str],
    policies: Sequence[Policy],
    streams: Streams,
    demands: Demands,
) -> Mapping[str, Sequence[Outcome]]:
    done, total = 0, len(policies) * sum(map(len, streams))
    residents = () if parsed_args.empty else tuple(snapshot.consumers.values())
    results: dict[str, list[Outcome]] = {policy.name: [] for policy in policies}
    with ProgressLine("simulating") as line:
        for policy, (seed, stream) in itertools.product(policies, enumerate(streams)):
            cloud = snapshot.cloud(is_empty=parsed_args.empty)
            # Not for secrets: a seed repeats a simulation.
            ties = random.Random(seed) if len(streams) > 1 else None  # noqa: S311
            scheduler = Scheduler(cloud, policy, ties, closed)

            def tell(number: int, _: int, before: int = done) -> None:
                line.tell_number("requests", before + number, total)

            outcome = simulate(cloud, scheduler, stream, demands, tell, residents)
            results[policy.name].append(outcome)
            done += len(stream)
    return results


def _policies(
    texts: Sequence[str], options: cfg.ConfigOpts, faults: FaultList
) -> Iterable[Policy]:
    loaded = loaded_weighers(options.weight_classes).multipliers(options, WEIGHERS)
    configured = dict.fromkeys(WEIGHERS, 0.0) | loaded
    scorings = configured_scorings(options)
    resources, traits = class_weights(options), options.resource_provider_traits
    for text in dict.fromkeys(texts or [NOVA, *scorings]):
        policy = faults.read(Policy.parse, text, configured, scorings)
        if policy is not None:
            yield replace(policy, resources=resources, traits=traits)


def _add_policy_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="NAME[=M][,WEIGHER=M]…",
        help="policy to compare; may be repeated (default: nova and each scoring)",
    )
    parser.add_argument(
        "--seeds",
        type=_count,
        default=ENOUGH_SEEDS,
        metavar="N",
        help="repeat with N seeds: other draws, and another choice among equal hosts"
        f" (default: {ENOUGH_SEEDS}; 1 chooses the first of equal hosts)",
    )
    parser.add_argument(
        "--empty", action="store_true", help="leave out the allocations of the snapshot"
    )


def _above_zero(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(text)
    return number


_above_zero.__name__ = "number above 0"


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


_count.__name__ = "whole number above 0"  # argparse shows the name in its error
