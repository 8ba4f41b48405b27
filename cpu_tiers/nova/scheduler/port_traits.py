"""Seams that put the traits of ports into the form that Placement understands (decision D88).

Nova copies ``required`` of a port's resource request into the query for allocation candidates as
it stands. Placement answers 400 to two of the requests, and the server gets no host:

* A port that requests only traits, for example with a minimum bandwidth of 0, becomes a group
  without resources: ``resources<port>=``. Placement takes such a group only without the empty
  parameter, and only in a ``same_subtree``.
* ``in:A,B``, any one of several traits, needs a parameter of its own and microversion 1.39. Nova
  joins all traits with commas and sends microversion 1.36.

nova-api, nova-conductor and nova-scheduler read the request of a port anew for each boot and for
each move, so the traits hold for all of them.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import functools
from collections.abc import Callable, Iterable
from typing import Any
from urllib.parse import parse_qsl, urlencode

from nova import objects

from cpu_tiers.model.port_request import require, split_requirement
from cpu_tiers.model.request import GroupDraft, RequestGroup
from cpu_tiers.nova.convert import name_of
from cpu_tiers.nova.scheduler import custom_names
from cpu_tiers.nova.scheduler.refusal import refusing
from cpu_tiers.nova.seams import Seam

_PORTS = "cpu_tiers_ports"
"""The attribute of Nova's ResourceRequest with the suffixes of the groups to put into form."""


def _mark_groups(original: Callable[..., Any]) -> Callable[..., Any]:
    """Note in Nova's request which groups of ports Placement would not understand."""

    @functools.wraps(original)
    def from_request_spec(
        cls: type, request_spec: objects.RequestSpec, enable_pinning_translate: bool = True
    ) -> Any:
        request = original(cls, request_spec, enable_pinning_translate)
        with refusing(f"the ports of a server of flavor {name_of(request_spec.flavor)}"):
            groups = [group for group in _port_groups(request, request_spec) if _needs_form(group)]
            if groups:
                setattr(request, _PORTS, frozenset(group.suffix for group in groups))
                # Placement answers 400 if it does not know one of the alternatives, for example
                # because no host has the physical network yet.
                alternatives = frozenset[str]().union(*(t for g in groups for t in g.any_of))
                custom_names.need(request, [RequestGroup(required=alternatives)])
        return request

    return from_request_spec


def _port_groups(request: Any, request_spec: objects.RequestSpec) -> Iterable[RequestGroup]:
    """Return the groups of a request that do not come from the flavor."""
    requested = request_spec.requested_resources if "requested_resources" in request_spec else None
    suffixes = {group.requester_id for group in requested or ()}
    return [_to_group(s, group) for s, group in request._rg_by_id.items() if s in suffixes]


def _to_group(suffix: str, nova_group: objects.RequestGroup) -> RequestGroup:
    draft = GroupDraft()
    draft.resources.update(nova_group.resources)
    draft.forbidden |= nova_group.forbidden_traits
    for text in nova_group.required_traits:
        require(draft, *split_requirement(text))
    return draft.freeze(suffix)


def _needs_form(group: RequestGroup) -> bool:
    return bool(group.any_of or not group.resources)


def _ask_in_form(original: Callable[..., Any]) -> Callable[..., Any]:
    """Send the query of a server with such ports in the form that Placement understands."""

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        suffixes: frozenset[str] = getattr(resources, _PORTS, frozenset())
        groups = [_to_group(s, g) for s, g in resources._rg_by_id.items() if s in suffixes]
        if not groups:
            return original(self, context, resources)
        # A copy with the same session: other requests use Nova's client at the same time.
        client = copy.copy(self)
        client.get = functools.partial(_get, self, groups, resources._same_subtree)
        return original(client, context, resources)

    return get_allocation_candidates


def _get(
    client: Any,
    groups: Iterable[RequestGroup],
    same_subtree: Iterable[Iterable[str]],
    url: str,
    version: str | None = None,
    global_request_id: str | None = None,
) -> Any:
    """Send the query; ``client`` is Nova's ``SchedulerReportClient``."""
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
    together = {suffix for suffixes in same_subtree for suffix in suffixes}
    return [
        *(pair for pair in parameters if pair[0] not in replaced),
        *(pair for group in groups for pair in group.parameters()),
        *(
            ("same_subtree", group.suffix)
            for group in groups
            if not group.resources and group.suffix not in together
        ),
    ]


SEAMS = (
    Seam(
        module="nova.scheduler.utils",
        path="ResourceRequest.from_request_spec",
        parameters=("cls", "request_spec", "enable_pinning_translate=True"),
        wrap=_mark_groups,
        layer=2,  # the outermost: the groups of the other wrappers are no groups of ports
        why=(
            "The only function through which boot, resize, every move and unshelving make their "
            "request; the wrapper notes the groups of ports that request only traits, or any one "
            "of several traits."
        ),
        unseen=(
            "If an operation makes its request elsewhere, Placement answers 400 to the query, and "
            "a server with such a port gets no host."
        ),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.get_allocation_candidates",
        parameters=("self", "context", "resources"),
        wrap=_ask_in_form,
        layer=-1,  # the innermost: joined_answers sends several queries, each of them in form
        why=(
            "Sends the query for candidates; the wrapper puts the traits of ports into the form "
            "that Placement understands."
        ),
        unseen=(
            "If another function sends the query, Placement answers 400 to the query, and a "
            "server with such a port gets no host."
        ),
    ),
    Seam(
        module="nova.scheduler.client.report",
        path="SchedulerReportClient.get",
        parameters=("self", "url", "version=None", "global_request_id=None"),
        why="Sends the query of the wrapper around ``get_allocation_candidates``.",
        unseen=(
            "If the query is sent by another function, Placement answers 400 to the query, and a "
            "server with such a port gets no host."
        ),
    ),
)
"""The seams for nova-scheduler."""
