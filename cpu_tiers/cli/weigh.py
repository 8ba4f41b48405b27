"""``cpu-tiers weigh``: sorts the candidate hosts for a server by their scores."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping

from cliff.lister import Lister

from cpu_tiers.cli.documents import read_json
from cpu_tiers.cli.formatting import FormattedValue
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.cli.request import add_query_arguments, read_query
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.names import as_known
from cpu_tiers.weights import SCORINGS, Forest


class Weigh(NovaConfCommand, Lister):
    """List the candidate hosts for a server with their scores, best first.

    A score has a part for each resource class and each trait; 1.0 is the best part. The
    options resource_provider_scoring, resource_provider_resources and
    resource_provider_traits in [filter_scheduler] of nova.conf select the scoring, the
    resource classes and the traits.
    """

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the server, its candidates and the scoring."""
        parser = super().get_parser(prog_name)
        add_query_arguments(parser)
        parser.add_argument(
            "--candidates",
            required=True,
            metavar="FILE",
            help="body of GET /allocation_candidates, microversion 1.29 or later",
        )
        parser.add_argument(
            "--scoring", choices=sorted(SCORINGS), help="scoring to use instead of nova.conf's"
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Compute the score of each host, and list the hosts."""
        options = self.nova_conf().filter_scheduler
        query = read_query(parsed_args, options)
        where = parsed_args.candidates
        answer = CandidatesAnswer.parse(read_json(where), where=where).usable()
        forest = Forest(
            answer.provider_summaries,
            query.resources(),
            query.required_traits(),
            scoring=SCORINGS[parsed_args.scoring or options.resource_provider_scoring],
            only_resources=list(map(as_known, options.resource_provider_resources)),
            only_traits=options.resource_provider_traits,
            groups=query.groups,
        )
        for host in answer.hosts():
            forest.offer(host, [request.allocations for request in answer.on_host(host)])
        scores = {host: forest.explain(host) for host in answer.hosts()}
        best_first = sorted(scores, key=lambda host: (-scores[host].score, host))
        return ("host", "score", "resource_score", "trait_score", "resources", "traits"), [
            (
                host,
                FormattedValue(scores[host].score, _rounded),
                FormattedValue(scores[host].resource_score, _rounded),
                FormattedValue(scores[host].trait_score, _rounded),
                FormattedValue(dict(scores[host].resources), _lines),
                FormattedValue(dict(scores[host].traits), _lines),
            )
            for host in best_first
        ]


def _rounded(score: float) -> str:
    return f"{score:.4f}"


def _lines(parts: Mapping[str, float]) -> str:
    return "\n".join(f"{name} {_rounded(part)}" for name, part in sorted(parts.items()))
