"""The allocation candidates of a server, as nova-scheduler asks Placement for them."""

from collections.abc import Mapping
from typing import NamedTuple

from cpu_tiers.model.candidates import CandidatesAnswer
from cpu_tiers.model.request import CandidateQuery
from cpu_tiers.tools.placement.candidate_survey import CandidateSurvey
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.explanation import read_names
from cpu_tiers.translators.server_queries import ServerQueries


class ServerCandidates(NamedTuple):
    """The candidates of a server.

    :param query: the query that has the candidates.
    :param names: the names of all hosts by the uuid of the root provider.
    """

    query: CandidateQuery
    answer: CandidatesAnswer
    names: Mapping[str, str]


def read_candidates(client: PlacementClient, queries: ServerQueries) -> ServerCandidates:
    """Return the usable candidates of a server.

    :raises PlacementError: Placement does not answer, or refuses.
    """
    survey = CandidateSurvey(client, (*queries.first, *queries.otherwise))
    effective, answer = queries.first, survey.answer(queries.first)
    if queries.otherwise and not answer.allocation_requests:
        effective, answer = queries.otherwise, survey.answer(queries.otherwise)
    return ServerCandidates(effective[0], answer, read_names(client, survey, answer.hosts()))
