"""``cpu-tiers weigh``: sorts the candidate hosts for a server by their scores.

The candidates may come from a list that the openstack client prints, ``openstack allocation
candidate list -f json`` of osc-placement. The column ``traits`` needs microversion 1.17; the other
columns do not depend on the microversion.
"""

import logging
import re
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.conf.weigher import class_weights, configured_scorings, idle_names, request_traits
from cpu_tiers.errors import FaultList
from cpu_tiers.model.candidates import AllocationRequest, CandidatesAnswer
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.tools.frame.cloud_source import aggregate_uuids
from cpu_tiers.tools.frame.documents import read_json
from cpu_tiers.tools.frame.formatting import FormattedValue, ListCommand
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_request import (
    add_aggregate_argument,
    add_request_arguments,
    add_source_arguments,
    as_in_spec,
    queries_of,
    read_source,
    tell_left_out,
    tell_notes_on_weighers,
    tell_unknown_additions,
    tell_unknown_states,
)
from cpu_tiers.tools.frame.terminal import HINT, MOST_LINES, ProgressLine
from cpu_tiers.tools.placement.candidates import CandidateSurvey, ServerCandidates
from cpu_tiers.tools.simulation.service_states import NOT_ASKED, ServiceStates
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
        server, ((query, *_), answer, names), states = self._candidates(parsed_args, conf)
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
            ordered = _best(ordered)
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
    ) -> tuple[ServerRequest, ServerCandidates, ServiceStates]:
        cloud = self.cloud_source(parsed_args, conf)
        if not parsed_args.candidates:
            self.find_tiers(conf, cloud)
        server = read_source(parsed_args, conf, cloud)
        if parsed_args.candidates:
            return server, _in_file(parsed_args, conf, server), NOT_ASKED
        tell_unknown_additions(conf)
        queries = queries_of(conf, server, aggregate_uuids(parsed_args.aggregate, cloud.services))
        states = cloud.service_states
        with ProgressLine("asking Placement"), cloud.placement() as client:
            survey = CandidateSurvey.of_servers(client, [queries], states)
            candidates = survey.of_server(queries)
            names = survey.host_names(candidates.answer.hosts())
            tell_unknown_states(states)
            tell_left_out(server.flavor, queries.left_out)
            return server, candidates._replace(names=names), states


def _offer_candidates(forest: Forest, answer: CandidatesAnswer) -> None:
    by_host = answer.by_host()
    for host in answer.hosts():
        forest.offer(host, [request.allocations for request in by_host.get(host, ())])


def _best(hosts: Sequence[str]) -> Sequence[str]:
    """Return the first hosts, and log how many follow."""
    if len(hosts) > MOST_LINES:
        LOG.info("The best %d of %d hosts %s:", MOST_LINES, len(hosts), HINT)
    return hosts[:MOST_LINES]


def _warn_of_idle_names(options: cfg.ConfigOpts.GroupAttr, answer: CandidatesAnswer) -> None:
    summaries = answer.provider_summaries.values()
    classes = {name for summary in summaries for name in summary["resources"]}
    traits = {name for summary in summaries for name in summary["traits"]}
    if summaries:
        for line in idle_names(options, classes.__contains__, traits.__contains__):
            LOG.warning("%s", line)


def _in_file(
    parsed_args: Namespace, conf: cfg.ConfigOpts, server: ServerRequest
) -> ServerCandidates:
    """Return the candidates in a file, which has no names of hosts."""
    where = parsed_args.candidates
    translators = extensions.load(extensions.TRANSLATORS)
    query = translate(as_in_spec(parsed_args, conf, server), translators)
    document = read_json(where)
    answer = (
        read_candidate_list(document, where=where)
        if isinstance(document, list)  # and no body of an answer
        else CandidatesAnswer.parse(document, where=where)
    )
    return ServerCandidates([query], answer.usable())


def _rounded(score: float) -> str:
    return f"{score:.4f}"


def _lines(parts: Mapping[str, float]) -> str:
    return "\n".join(f"{name} {_rounded(part)}" for name, part in sorted(parts.items()))


def _traits_that_count(parts: Mapping[str, float]) -> str:
    counted = {name: part for name, part in parts.items() if part > 0}
    others = len(parts) - len(counted)
    return "\n".join(filter(None, [_lines(counted), f"others: {others}" if others else ""]))


NUMBER, ALLOCATION, PROVIDER, TRAITS = "#", "allocation", "resource provider", "traits"
INVENTORY = "inventory used/capacity"

COMMAND = "openstack allocation candidate list -f json"

_AMOUNT = re.compile(r"([A-Z0-9_]{1,255})=([0-9]{1,10})", re.ASCII)
_INVENTORY = re.compile(r"([A-Z0-9_]{1,255})=([0-9]{1,10})/([0-9]{1,10})", re.ASCII)
_TRAIT = re.compile(r"([A-Z0-9_]{1,255})", re.ASCII)


def read_candidate_list(body: Sequence[object], *, where: str) -> CandidatesAnswer:
    """Return the answer of Placement that the list was made from, as far as the list has it.

    The list does not say which provider is the root provider of a host. So each candidate must
    have a single provider, the host.

    :param where: the name of the document in an error message.
    :raises InvalidInput: with every fault and its place.
    """
    faults = FaultList()
    summaries: dict[str, Mapping[str, Any]] = {}
    requests: dict[int, AllocationRequest] = {}
    for index, item in enumerate(body, start=1):
        at = _Row(f"{where}, row {index}", faults)
        row = at.of(item, dict)
        if row is not item or at.lacks_columns(row):
            continue
        number, provider = at.number(row), at.get(row, PROVIDER, str)
        if provider == row[PROVIDER] == "":
            (at / PROVIDER).wrong(provider, "give the uuid of the provider")
        allocation = {name: int(n) for name, n in at.parts(row, ALLOCATION, _AMOUNT)}
        summary = at.summary(row, provider)
        (at / ALLOCATION).check_classes(allocation, summary["resources"])
        if number in requests:
            at.wrong_host(number)
        if summaries.setdefault(provider, summary) != summary:
            (at / PROVIDER).wrong(provider, "give the same inventory and traits in each row")
        requests[number] = AllocationRequest(allocations={provider: allocation})
    faults.raise_if_any()
    return CandidatesAnswer(
        allocation_requests=tuple(requests.values()), provider_summaries=summaries
    )


class _Row(DocumentPlace):
    """A row of the list."""

    def lacks_columns(self, row: Mapping[str, Any]) -> bool:
        missing = [
            name for name in (NUMBER, ALLOCATION, PROVIDER, INVENTORY, TRAITS) if name not in row
        ]
        if missing:
            advice = f"give all columns of {COMMAND}"
            if missing == [TRAITS]:
                advice += ", with --os-placement-api-version 1.29 or newer"
            self.faults.add(self.path, f"no column {', '.join(missing)}", advice)
        return bool(missing)

    def number(self, row: Mapping[str, Any]) -> int:
        if type(row[NUMBER]) is int:  # isinstance(True, int) is true
            return int(row[NUMBER])
        (self / NUMBER).wrong(row[NUMBER], "give the number of the candidate")
        return 0

    def parts(
        self, row: Mapping[str, Any], column: str, form: re.Pattern[str]
    ) -> list[tuple[str, ...]]:
        """Return the groups of each part of a text with commas between the parts."""
        at = self / column
        text = at.of(row[column], str)
        matches = [(part, form.fullmatch(part)) for part in text.split(",") if text]
        for part, match in matches:
            if match is None:
                at.wrong(part, f"give the column as `{COMMAND}` prints it")
        return [match.groups() for _, match in matches if match]

    def summary(self, row: Mapping[str, Any], provider: str) -> Mapping[str, Any]:
        return {
            "resources": {
                name: {"used": int(used), "capacity": int(capacity)}
                for name, used, capacity in self.parts(row, INVENTORY, _INVENTORY)
            },
            "traits": [name for (name,) in self.parts(row, TRAITS, _TRAIT)],
            "parent_provider_uuid": None,
            "root_provider_uuid": provider,
        }

    def check_classes(self, allocation: Mapping[str, int], present: Mapping[str, Any]) -> None:
        for name, amount in allocation.items():
            (self / name).amount(amount, 1)
        for name in allocation.keys() - present.keys():
            self.wrong(name, f"name a resource class that the column {INVENTORY} has")

    def wrong_host(self, number: int) -> None:
        self.faults.add(
            self.path,
            f"candidate {number} has several providers",
            "the list does not say which providers belong to one host: leave out --candidates, so"
            " that Placement is asked, or give the body of GET /allocation_candidates",
        )
