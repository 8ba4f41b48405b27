"""Seam that adds the request groups of translators to Nova's query for allocation candidates.

The seam calls every translator whose groups Nova does not request already
(:func:`cpu_tiers.translators.contract.already_requested_by`). Of the built-in
translators, only the translator of VCPU_SHARES is called. Nova calls
``ResourceRequest.from_request_spec`` for boot, resize, every kind of migration,
evacuation and unshelving.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nova import objects

from cpu_tiers import extensions
from cpu_tiers.errors import ExtensionError, InvalidInput
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.nova import custom_names
from cpu_tiers.nova.convert import name_of
from cpu_tiers.nova.scheduler.admission import existing_server, server_of, valid_translators
from cpu_tiers.nova.scheduler.refusal import leave_unexplained, refusing
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import BUILT_IN, ServerRequest, Translator, claims, shares
from cpu_tiers.translators.compose import check_group
from cpu_tiers.translators.contract import functions_that_request


def claims_of(
    request_spec: objects.RequestSpec, translators: Mapping[str, Translator]
) -> CandidateQuery:
    """Return the groups that translators add to Nova's request for a server.

    :param translators: the translators that nova-scheduler calls, by name.
    :raises InvalidInput: the server is going to be created or resized, and flavor and image
        contradict each other, or an extra spec is malformed: below microversion 2.86, nova-api
        accepts any value.
    :raises ExtensionError: two translators claim the same resource class.
    """
    try:
        server = server_of(request_spec)
        return claims(server, _wanted(server, translators))
    except InvalidInput as error:
        server = existing_server(request_spec, error)
        wanted = _wanted(server, translators)
        return claims(server, valid_translators(server, wanted))


def _wanted(
    server: ServerRequest, translators: Mapping[str, Translator]
) -> Mapping[str, Translator]:
    return translators if server.query_vcpu_shares else without_shares(translators)


def scheduler_translators() -> dict[str, Translator]:
    """Return the translators whose groups nothing else in nova-scheduler requests, by name.

    :raises ExtensionError: a translator does not load.
    """
    installed: dict[str, Translator] = {**BUILT_IN, **extensions.load(extensions.TRANSLATORS)}
    return {
        name: translator
        for name, translator in installed.items()
        if not functions_that_request(translator)
    }


def without_shares(translators: Mapping[str, Translator]) -> dict[str, Translator]:
    """Return all translators except the translator of VCPU_SHARES."""
    return {
        name: translator
        for name, translator in translators.items()
        if translator is not shares.translate
    }


def _ask_for_claims(original: Callable[..., Any]) -> Callable[..., Any]:
    """Add the groups of translators to Nova's request.

    A group with the suffix of a group in the request is merged into that group.
    """
    # Once, when the seam is installed: a translator that does not load stops nova-scheduler at
    # its start.
    translators = scheduler_translators()

    @functools.wraps(original)
    def from_request_spec(
        cls: type, request_spec: objects.RequestSpec, enable_pinning_translate: bool = True
    ) -> Any:
        flavor = name_of(request_spec.flavor)
        with refusing(f"a translator for flavor {flavor}"):
            claimed = claims_of(request_spec, translators)
        request = original(cls, request_spec, enable_pinning_translate)
        with refusing(f"a translator for flavor {flavor}"):
            for group in claimed.groups:
                _add(request, group, flavor)
            # A new list, since Nova's list belongs to the request spec, which is saved.
            request._same_subtree = [*request._same_subtree, *map(list, claimed.same_subtree)]
            custom_names.need(request, claimed.groups, translated=True)
        if not enable_pinning_translate:
            leave_unexplained(request)
        return request

    return from_request_spec


def _add(request: Any, group: RequestGroup, flavor: str) -> None:
    """Merge a group into the group of Nova's request with the same suffix.

    :raises ExtensionError: Nova and a translator claim the same resource class, or the group
        has alternative traits.
    :raises InvalidInput: Placement would refuse the merged group.
    """
    if group.any_of:
        raise ExtensionError(
            "a translator requires any one of several traits, which Nova's request cannot express"
        )
    # A copy, since the groups of ports and devices belong to the request spec, which is saved.
    nova_group = request.get_request_group(group.suffix or None).obj_clone()
    request._rg_by_id[group.suffix or None] = nova_group
    if both := sorted(group.resources.keys() & nova_group.resources.keys()):
        raise ExtensionError(f"Nova and a translator both claim {', '.join(both)}")
    nova_group.resources.update(group.resources)
    nova_group.required_traits |= group.required
    nova_group.forbidden_traits |= group.forbidden
    merged = RequestGroup(
        suffix=group.suffix,
        resources=nova_group.resources,
        required=frozenset(nova_group.required_traits),
        forbidden=frozenset(nova_group.forbidden_traits),
    )
    check_group(flavor, merged)


CLAIMS = Seam(
    module="nova.scheduler.utils",
    path="ResourceRequest.from_request_spec",
    parameters="cls, request_spec, enable_pinning_translate=True",
    wrap=_ask_for_claims,
)
"""The seam for nova-scheduler. nova-api must not have the seam: up to release 30, unified limits
answer 403 to a server that claims a resource class without a registered limit."""
