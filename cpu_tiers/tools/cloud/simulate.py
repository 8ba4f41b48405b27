"""``cpu-tiers simulate``: the same requests under several weigher settings, side by side."""

import itertools
import math
import random
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence

from oslo_config import cfg

from cpu_tiers.errors import FaultList
from cpu_tiers.tools.cloud.simulated_requests import SimulatedRequests
from cpu_tiers.tools.cloud.simulation_report import COLUMNS, row, tier_names
from cpu_tiers.tools.frame.formatting import ListCommand
from cpu_tiers.tools.frame.live_request import tell_unknown_additions
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.progress import ProgressLine
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.server_arguments import add_numa_argument
from cpu_tiers.tools.frame.snapshot_argument import read_snapshot
from cpu_tiers.tools.frame.tier_arguments import add_tier_argument, read_tiers
from cpu_tiers.tools.page.libraries import page_libraries
from cpu_tiers.tools.simulation.comparison import ENOUGH_SEEDS, compare, verdict
from cpu_tiers.tools.simulation.policies import NOVA, WEIGHERS, Policy
from cpu_tiers.tools.simulation.run import Outcome, simulate
from cpu_tiers.tools.simulation.scheduler import Scheduler
from cpu_tiers.tools.simulation.snapshot import Snapshot
from cpu_tiers.weights import SCORINGS

_POLICIES = (NOVA, *SCORINGS)


class Simulate(NovaConfCommand, ListCommand):
    """List how many servers of the same requests each policy takes, and the rest of the cloud.

    A policy is the name of a scoring, or nova for Nova's weighers without a scoring, and
    multipliers: boring=2.0,cpu=0 has the scoring boring with the multiplier 2.0 and no weigher of
    CPUs. nova.conf has the other multipliers. The text says first which policy refuses the least,
    and whether the seeds agree. A flavor with faults is left out.
    """

    all_help = "show all flavors of which servers were refused, and all faults of a refusal"
    formats = "simulation"
    default_format = "text"

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
        add_tier_argument(parser)
        parser.add_argument(
            "--html", metavar="FILE", help="also write a page with charts into this file"
        )
        add_numa_argument(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Run each policy with each seed."""
        if parsed_args.html:
            with page_libraries():  # before the simulation, which may take hours
                from cpu_tiers.tools.page.simulation import simulation_page
        conf = self.nova_conf()
        faults = FaultList()
        policies = list(_policies(parsed_args.policy, conf.filter_scheduler, faults))
        snapshot = faults.read(read_snapshot, parsed_args.snapshot)
        tiers = faults.read(read_tiers, parsed_args) or ()
        faults.raise_if_any()
        assert snapshot is not None, "a fault was raised"  # noqa: S101  # narrows the type
        requests = SimulatedRequests.read(parsed_args, conf, snapshot, tiers)
        tell_unknown_additions(conf)
        results = _run(parsed_args, snapshot, policies, requests)
        texts = verdict(results, has_same_requests=bool(parsed_args.requests))
        if parsed_args.html:
            page = simulation_page(results, tier_names(requests.demands), texts).html()
            write_output(parsed_args.html, page.encode(), private=True)
        comparison = compare(results)
        rows = [
            row(name, outcomes, requests.demands, comparison) for name, outcomes in results.items()
        ]
        parsed_args.verdict = texts  # for the text
        return COLUMNS, rows


def _run(
    parsed_args: Namespace,
    snapshot: Snapshot,
    policies: Sequence[Policy],
    requests: SimulatedRequests,
) -> Mapping[str, Sequence[Outcome]]:
    """Return the outcomes of each policy, one for each stream of requests."""
    streams = requests.streams
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

            outcome = simulate(cloud, scheduler, stream, requests.demands, tell, residents)
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
