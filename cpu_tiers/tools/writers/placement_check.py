"""``cpu-tiers placement check``: tells whether Placement allocates more than a provider has."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import asdict

from cpu_tiers.tools.frame.formatting import ShowCommand
from cpu_tiers.tools.frame.nova_conf_command import WRITES, NovaConfCommand
from cpu_tiers.tools.frame.numbers import whole_number_from
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.placement.concurrent_claims import ClaimsResult, ConcurrentClaims

LOG = logging.getLogger(__name__)

OVERSELLS = 3
"""The exit status if Placement allocates more than the capacity of a provider."""


class PlacementCheck(NovaConfCommand, ShowCommand):
    """Find out whether Placement allocates more than the capacity of a provider.

    In each round, many claims of one unit are sent to a new provider at the same time, and
    about a third of the claims fit. The provider has a resource class that no server requests.
    The command deletes the provider and its allocations after each round, also after Ctrl-C.
    Exit status: 0 if Placement never allocates more than the capacity, 3 if Placement does.
    """

    snapshot_refusal = WRITES

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--claimers",
            type=whole_number_from(2, 64),
            default=16,
            metavar="N",
            help="number of claims at the same time, 2 to 64 (default: 16)",
        )
        parser.add_argument(
            "--rounds",
            type=whole_number_from(1, 1000),
            default=10,
            metavar="N",
            help="number of rounds, 1 to 1000 (default: 10)",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[Sequence[str], Iterable[object]]:
        with (
            ProgressLine(f"claiming in {parsed_args.rounds} rounds"),
            self.placement(self.nova_conf(), connections=parsed_args.claimers) as client,
        ):
            claims = ConcurrentClaims(
                client=client, claimers=parsed_args.claimers, claim=client.set_consumers
            )
            try:
                result = claims.run(parsed_args.rounds)
            finally:
                for name in claims.left_behind:
                    LOG.error(
                        "Provider %s may still exist: delete its allocations (openstack resource"
                        " provider allocation delete), and then the provider (openstack resource"
                        " provider delete)",
                        name,
                    )
        self.status = _log_result(result)
        shown = asdict(result)
        return tuple(shown), shown.values()


def _log_result(result: ClaimsResult) -> int:
    if not result.oversold_rounds:
        LOG.info(
            "Placement allocated no more than the capacity of %d units in %d rounds.",
            result.capacity,
            result.rounds,
        )
        return 1 if result.left_behind else 0
    LOG.error(
        "Placement allocated more than the capacity in %d of %d rounds, at most %d of %d units:"
        " servers that are created at the same time can get more of a host than the host has."
        " Set [placement] allocation_conflict_retry_count = 1 in placement.conf wherever Placement"
        " runs, restart Placement, and repeat the check. If you cannot change placement.conf, set"
        " [filter_scheduler] give_back_oversold_claims = true in nova.conf of nova-scheduler.",
        result.oversold_rounds,
        result.rounds,
        result.most_granted,
        result.capacity,
    )
    return OVERSELLS
