"""The query for allocation candidates with ports whose traits Placement does not understand (D88).

nova-scheduler sends the query for a new server and for each move, and nova-compute for a port
that is attached to a running server.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import functools
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlencode

from nova import objects
from nova.context import RequestContext

from cpu_tiers.model.port import require, split_requirement
from cpu_tiers.model.request import GroupDraft, RequestGroup
from cpu_tiers.nova import custom_names, steps
from cpu_tiers.nova.notes import note, query_of
from cpu_tiers.nova.protocols import ReportClient, ResourceRequest
from cpu_tiers.nova.seams import Function, seam


def mark(request: ResourceRequest, suffixes: Iterable[str | None]) -> None:
    """Note in a request which groups of ports Placement would not understand."""
    groups = [_to_group(s, g) for s, g in request._rg_by_id.items() if s and s in set(suffixes)]
    if groups := [group for group in groups if group.any_of or not group.resources]:
        note(request, ports=frozenset(group.suffix for group in groups))
        # Placement answers 400 if it does not know one of the alternatives, for example
        # because no host has the physical network yet.
        alternatives = frozenset[str]().union(*(t for g in groups for t in g.any_of))
        custom_names.need(request, [RequestGroup(required=alternatives)])


def _to_group(suffix: str, nova_group: objects.RequestGroup) -> RequestGroup:
    draft = GroupDraft()
    draft.resources.update(nova_group.resources)
    draft.forbidden |= nova_group.forbidden_traits
    for text in nova_group.required_traits:
        require(draft, *split_requirement(text))
    return draft.freeze(suffix)


def _ask_in_form(
    original: Function, self: ReportClient, context: RequestContext, resources: ResourceRequest
) -> Any:
    """Send the query of a server with such ports in the form that Placement understands."""
    suffixes = query_of(resources).ports
    groups = [_to_group(s, g) for s, g in resources._rg_by_id.items() if s in suffixes]
    if not groups:
        return original(self, context, resources)
    # A copy with the same session: other requests use Nova's client at the same time.
    client = copy.copy(self)
    client.get = functools.partial(_get, self, groups, resources._same_subtree)
    return original(client, context, resources)


def _get(
    client: ReportClient,
    groups: Iterable[RequestGroup],
    same_subtree: Iterable[Iterable[str]],
    url: str,
    version: str | None = None,
    global_request_id: str | None = None,
) -> Any:
    path, _, query = url.partition("?")
    parameters = in_form(parse_qsl(query, keep_blank_values=True), groups, same_subtree)
    if any(group.any_of for group in groups):
        version = "1.39"
    return client.get(
        f"{path}?{urlencode(parameters)}", version=version, global_request_id=global_request_id
    )


def in_form(
    parameters: Iterable[tuple[str, str]],
    groups: Iterable[RequestGroup],
    same_subtree: Iterable[Iterable[str]],
) -> list[tuple[str, str]]:
    """Return the parameters of a query with groups in the form that Placement understands.

    :param groups: the groups whose traits and resources replace the parameters of Nova.
    :param same_subtree: the suffixes of each ``same_subtree`` of the query.
    """
    replaced = {f"{key}{group.suffix}" for group in groups for key in ("resources", "required")}
    return [
        *(pair for pair in parameters if pair[0] not in replaced),
        *(pair for group in groups for pair in group.parameters()),
        *_own_subtrees(groups, same_subtree),
    ]


def _own_subtrees(
    groups: Iterable[RequestGroup], same_subtree: Iterable[Iterable[str]]
) -> Iterator[tuple[str, str]]:
    """Yield a ``same_subtree`` for each group without resources that is in none of the query."""
    together = {suffix for suffixes in same_subtree for suffix in suffixes}
    for group in groups:
        if not group.resources and group.suffix not in together:
            yield "same_subtree", group.suffix


SEAMS = (
    steps.candidates(_ask_in_form),
    seam(
        "nova.scheduler.client.report:SchedulerReportClient.get",
        "self, url, version=None, global_request_id=None",
    ),
)
