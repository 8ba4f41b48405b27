"""``cpu-tiers simulate``: the same requests under several weigher settings, side by side."""

import itertools
import math
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence

from oslo_config import cfg

from cpu_tiers.cli.documents import read_bytes
from cpu_tiers.cli.flavor_documents import read_flavors
from cpu_tiers.cli.formatting import ListCommand
from cpu_tiers.cli.live_request import queries_of, tell_unknown_additions
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.cli.progress import ProgressLine
from cpu_tiers.cli.safe_files import write_output
from cpu_tiers.cli.server_arguments import add_numa_argument, requests_numa_nodes
from cpu_tiers.cli.simulation_report import COLUMNS, row
from cpu_tiers.cli.snapshot_argument import read_snapshot
from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES, effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.page.libraries import page_libraries
from cpu_tiers.simulation.policies import NOVA, WEIGHERS, Policy
from cpu_tiers.simulation.requests import Arrival, draw_arrivals, read_arrivals
from cpu_tiers.simulation.run import Outcome, simulate
from cpu_tiers.simulation.scheduler import Demand, Scheduler
from cpu_tiers.simulation.snapshot import Snapshot
from cpu_tiers.translators import ServerRequest
from cpu_tiers.weights import SCORINGS

_POLICIES = (NOVA, *SCORINGS)


class Simulate(NovaConfCommand, ListCommand):
    """List how many servers of the same requests each policy takes, and the rest of the cloud.

    A policy is the name of a scoring, or nova for Nova's weighers without a scoring, and
    multipliers: boring=2.0,cpu=0 has the scoring boring with the multiplier 2.0 and no weigher of
    CPUs. nova.conf has the other multipliers. Numbers of several seeds are the mean, with the
    least and the most.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the cloud, the requests and the policies."""
        parser: ArgumentParser = super().get_parser(prog_name)
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
        parser.add_argument(
            "--html", metavar="FILE", help="also write a page with charts into this file"
        )
        add_numa_argument(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Run each policy with each seed."""
        if parsed_args.html:
            with page_libraries():  # before the simulation, which may take hours
                from cpu_tiers.page.simulation import simulation_page
        conf = self.nova_conf()
        options = conf.filter_scheduler
        faults = FaultList()
        policies = list(_policies(parsed_args.policy, options, faults))
        snapshot = faults.read(read_snapshot, parsed_args.snapshot)
        flavors = _flavors(parsed_args, snapshot, faults)
        faults.raise_if_any()
        assert snapshot is not None, "a fault was raised"  # noqa: S101  # narrows the type
        streams = _streams(parsed_args, flavors)
        wanted = {arrival.flavor for stream in streams for arrival in stream}
        demands = _demands(parsed_args, conf, [f for n, f in flavors.items() if n in wanted])
        tell_unknown_additions(conf)
        results = _run(parsed_args, snapshot, policies, streams, demands)
        if parsed_args.html:
            tiers = {name: demand.tier or "none" for name, demand in demands.items()}
            page = simulation_page(results, tiers).html()
            write_output(parsed_args.html, page.encode(), private=True)
        return COLUMNS, [row(name, outcomes, demands) for name, outcomes in results.items()]


def _run(
    parsed_args: Namespace,
    snapshot: Snapshot,
    policies: Sequence[Policy],
    streams: Sequence[Sequence[Arrival]],
    demands: Mapping[str, Demand],
) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of each policy, one for each stream of requests."""
    done, total = 0, len(policies) * sum(map(len, streams))
    residents = () if parsed_args.empty else tuple(snapshot.consumers.values())
    results: dict[str, list[Outcome]] = {policy.name: [] for policy in policies}
    with ProgressLine("simulating") as line:
        for policy, (seed, stream) in itertools.product(policies, enumerate(streams)):
            cloud = snapshot.cloud(is_empty=parsed_args.empty)
            # Not for secrets: a seed repeats a simulation.
            ties = random.Random(seed) if len(streams) > 1 else None  # noqa: S311
            scheduler = Scheduler(cloud, policy, ties)

            def tell(number: int, _: int, before: int = done) -> None:
                line.tell_number("requests", before + number, total)

            outcome = simulate(cloud, scheduler, stream, demands, tell, residents)
            results[policy.name].append(outcome)
            done += len(stream)
    return results


def _policies(
    texts: Sequence[str], options: cfg.ConfigOpts, faults: FaultList
) -> Iterable[Policy]:
    configured = {name: options[f"{name}_weight_multiplier"] for name in WEIGHERS}
    for text in dict.fromkeys(texts or _POLICIES):
        policy = faults.read(Policy.parse, text, configured)
        if policy is not None:
            yield policy


def _flavors(
    parsed_args: Namespace, snapshot: Snapshot | None, faults: FaultList
) -> Mapping[str, Flavor]:
    """Return the flavors of the file or else of the snapshot, by name."""
    if parsed_args.flavors:
        flavors = tuple(read_flavors(parsed_args.flavors, faults))
    else:
        flavors = snapshot.flavors if snapshot is not None else ()
    if not flavors and not faults.faults:
        faults.add(parsed_args.snapshot, "no flavors", "give the flavors with --flavors")
    return {flavor.name: flavor for flavor in flavors}


def _streams(parsed_args: Namespace, flavors: Mapping[str, Flavor]) -> list[list[Arrival]]:
    """Return the requests of each seed; a file has the same requests for each seed."""
    if parsed_args.requests:
        path = parsed_args.requests
        try:
            lines = read_bytes(path).decode().splitlines()
        except UnicodeError as error:
            raise InvalidInput.of(path, "no text in UTF-8", "give a CSV table") from error
        return [read_arrivals(lines, list(flavors), where=path)] * parsed_args.seeds
    shares = _shares(parsed_args.mix, flavors)
    if parsed_args.stay is not None and not parsed_args.stay > 0:
        raise InvalidInput.of("--stay", f"got {parsed_args.stay}", "give a number above 0")
    return [
        draw_arrivals(parsed_args.draw, shares, parsed_args.stay, random.Random(seed))  # noqa: S311
        for seed in range(parsed_args.seeds)
    ]


def _shares(mix: Sequence[str], flavors: Mapping[str, Flavor]) -> Mapping[str, float]:
    """Return how often each flavor is drawn."""
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
    parsed_args: Namespace, conf: cfg.ConfigOpts, flavors: Iterable[Flavor]
) -> Mapping[str, Demand]:
    """Return what servers of each flavor request, as nova-scheduler would ask for it."""
    options = conf.filter_scheduler
    faults = FaultList()
    demands = {}
    for flavor in flavors:
        server = ServerRequest(
            flavor=flavor,
            query_vcpu_shares=options.query_placement_for_vcpu_shares,
            query_numa=requests_numa_nodes(parsed_args, options, flavor),
        )
        with faults:
            queries = queries_of(conf, server)
            has_nodes = len(queries.first) > 1
            plain = queries_of(conf, server._replace(query_numa=False)) if has_nodes else None
            demands[flavor.name] = Demand(
                flavor=flavor.name,
                queries=queries.first,
                otherwise=queries.otherwise,
                weighed=plain.first[0] if plain else None,
                shares=effective_shares(flavor),
                tier=flavor.extra_specs.get(MULTIPLIER) or flavor.extra_specs.get(SHARES) or "",
            )
    faults.raise_if_any()
    return demands


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
        default=1,
        metavar="N",
        help="repeat with N seeds: other draws, and another choice among equal hosts"
        " (default: 1, and the first of equal hosts)",
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
