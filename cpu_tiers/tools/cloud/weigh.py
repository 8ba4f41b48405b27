"""``cpu-tiers weigh``: sorts the candidate hosts for a server by their scores.

The candidates may come from a list that the openstack client prints, ``openstack allocation
candidate list -f json`` of osc-placement. The column ``traits`` needs microversion 1.17; the other
columns do not depend on the microversion.
"""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.conf.weigher import class_weights, configured_scorings, idle_names, request_traits
from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.cloud_model.service_states import NOT_ASKED, ServiceStates
from cpu_tiers.tools.frame.cloud_objects import aggregate_uuids
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.notes_on_answers import (
    tell_left_out,
    tell_notes_on_weighers,
    tell_unknown_additions,
    tell_unknown_states,
)
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_source_arguments
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    as_in_spec,
    queries_of,
    read_source,
)
from cpu_tiers.tools.frame.terminal import HINT, MOST_LINES, ProgressLine
from cpu_tiers.tools.placement.candidate_answer import read_answer, read_candidate_list
from cpu_tiers.tools.placement.candidates import CandidateSurvey
from cpu_tiers.translators import ServerRequest, translate
from cpu_tiers.weights import SCORINGS, Scoring, make_forest
from cpu_tiers.weights.forest import Forest

LOG = logging.getLogger(__name__)


_COLUMNS = (
    "host", "score", "resource_score", "trait_score", "resources", "traits", "soft_traits",
)  # fmt: skip


class Weigh(NovaConfCommand, ListCommand):
    """List the candidate hosts for a server with their scores, best first.

    The command asks Placement for the candidates, as nova-scheduler does. With --candidates, it
    reads them from a file, and a host has only the uuid of its root provider.

    A score has a part for each resource class and each trait; 1.0 is the best part. The
    options resource_provider_scoring, resource_provider_resources and
    resource_provider_traits in [filter_scheduler] of nova.conf select the scoring, the
    resource classes and the traits. Hosts with preferred traits stand before other hosts, and
    hosts with avoided traits after them. A table has the best hosts; --all shows all hosts, and
    all their traits.
    """

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_source_arguments(parser)
        add_request_arguments(parser)
        add_aggregate_argument(parser)
        parser.add_argument(
            "--candidates",
            metavar="FILE",
            help="output of `openstack allocation candidate list -f json`, or the body of GET"
            " /allocation_candidates, microversion 1.29 or later (default: ask Placement)",
        )
        parser.add_argument(
            "--scoring",
            metavar="NAME",
            help=f"scoring to use instead of nova.conf's: {', '.join(sorted(SCORINGS))}",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        if parsed_args.candidates and parsed_args.aggregate:
            self._parser.error("--aggregate is for a query: leave out --candidates")
        conf = self.nova_conf()
        options = conf.filter_scheduler
        scoring = self._scoring(parsed_args, options)
        server, query, answer, names, states = self._candidates(parsed_args, conf)
        specs = server.flavor.extra_specs
        if not answer.allocation_requests:
            LOG.info("No host has a candidate; `explain` shows why.")
        _warn_of_idle_names(options, answer)
        tell_notes_on_weighers(conf, specs)
        forest = make_forest(
            answer.provider_summaries,
            query.resources(),
            query.required_traits(),
            scoring=scoring,
            only_resources=class_weights(options),
            only_traits=options.resource_provider_traits,
            groups=query.groups,
        )
        _offer_candidates(forest, answer)
        hosts = [host for host in answer.hosts() if host not in states.lacking]
        scores = {host: forest.explain(host) for host in hosts}
        traits = request_traits(options, specs)
        soft = traits.of_hosts(answer.provider_summaries, answer.used_providers())

        def order(host: str) -> tuple[float, float, str]:
            trait_weight = sum(soft.get(host, {}).values())
            trait_weight *= options.resource_provider_trait_weight_multiplier
            return -trait_weight, -scores[host].score, names.get(host, host)

        ordered: Sequence[str] = sorted(scores, key=order)
        if parsed_args.formatter == "table" and not parsed_args.all:
            if len(ordered) > MOST_LINES:
                LOG.info("The best %d of %d hosts %s:", MOST_LINES, len(ordered), HINT)
            ordered = ordered[:MOST_LINES]
        lines_of = _lines if parsed_args.all else _traits_that_count
        return _COLUMNS, [
            (
                names.get(host, host),
                FormattedValue(scores[host].score, _rounded),
                FormattedValue(scores[host].resource_score, _rounded),
                FormattedValue(scores[host].trait_score, _rounded),
                FormattedValue(dict(scores[host].resources), _lines),
                FormattedValue(dict(scores[host].traits), lines_of),
                FormattedValue(soft.get(host, {}), _lines),
            )
            for host in ordered
        ]

    def _scoring(self, parsed_args: Namespace, options: Any) -> Scoring:
        """Return the scoring that the argument or nova.conf names."""
        scorings = configured_scorings(options)
        name = parsed_args.scoring
        if name is None:
            name = options.resource_provider_scoring
        if name not in scorings:
            self._parser.error(f"--scoring {name}: name one of {', '.join(scorings)}")
        return scorings[name]

    def _candidates(
        self, parsed_args: Namespace, conf: cfg.ConfigOpts
    ) -> tuple[ServerRequest, CandidateQuery, CandidatesAnswer, Mapping[str, str], ServiceStates]:
        """Return the server, the query that is weighed, its candidates and the names of hosts."""
        cloud = self.cloud_source(parsed_args, conf)
        if not parsed_args.candidates:
            self.find_tiers(conf, cloud)
        server = read_source(parsed_args, conf, cloud)
        if parsed_args.candidates:
            return server, *_in_file(parsed_args, conf, server), {}, NOT_ASKED
        tell_unknown_additions(conf, cloud, server.image)
        wanted = aggregate_uuids(parsed_args.aggregate, cloud.nova)
        queries = queries_of(conf, server, wanted, cloud)
        states = cloud.service_states
        with ProgressLine("asking Placement"), cloud.placement() as client:
            survey = CandidateSurvey.of_servers(client, [queries], states)
            answer = survey.of_server(queries)
            names, _ = survey.host_names(answer.hosts())
            tell_unknown_states(states)
            tell_left_out(server.flavor, queries.left_out)
            return server, queries.queries[0], answer, names, states


def _offer_candidates(forest: Forest, answer: CandidatesAnswer) -> None:
    by_host = answer.by_host()
    for host in answer.hosts():
        forest.offer(host, [request.allocations for request in by_host.get(host, ())])


def _warn_of_idle_names(options: cfg.ConfigOpts.GroupAttr, answer: CandidatesAnswer) -> None:
    summaries = answer.provider_summaries.values()
    classes = {name for summary in summaries for name in summary["resources"]}
    traits = {name for summary in summaries for name in summary["traits"]}
    if summaries:
        for line in idle_names(options, classes.__contains__, traits.__contains__):
            LOG.warning("%s", line)


def _in_file(
    parsed_args: Namespace, conf: cfg.ConfigOpts, server: ServerRequest
) -> tuple[CandidateQuery, CandidatesAnswer]:
    """Return the candidates in a file, which has no names of hosts."""
    where = parsed_args.candidates
    translators = extensions.load(extensions.TRANSLATORS)
    query = translate(as_in_spec(parsed_args, conf, server), translators)
    document = read_json(where)
    answer = (
        read_candidate_list(document, where=where)
        if isinstance(document, list)  # and no body of an answer
        else read_answer(document, where=where)
    )
    return query, answer.usable()


def _rounded(score: float) -> str:
    return f"{score:.4f}"


def _lines(parts: Mapping[str, float]) -> str:
    return "\n".join(f"{name} {_rounded(part)}" for name, part in sorted(parts.items()))


def _traits_that_count(parts: Mapping[str, float]) -> str:
    counted = {name: part for name, part in parts.items() if part > 0}
    others = len(parts) - len(counted)
    return "\n".join(filter(None, [_lines(counted), f"others: {others}" if others else ""]))
