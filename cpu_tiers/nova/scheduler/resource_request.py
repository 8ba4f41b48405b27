"""Seam that adds the request groups of translators to Nova's query for allocation candidates.

The seam calls every translator whose groups Nova does not request already
(:func:`cpu_tiers.translators.contract.already_requested_by`). Of the built-in translators, only
the translator of VCPU_SHARES is called. Nova calls ``ResourceRequest.from_request_spec`` for boot,
resize, every kind of migration, evacuation and unshelving.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Mapping
from typing import Any

from nova import objects

from cpu_tiers import extensions
from cpu_tiers.errors import ExtensionError, InvalidInput
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.nova import custom_names, steps
from cpu_tiers.nova.convert import add_group, name_of, to_group
from cpu_tiers.nova.notes import note
from cpu_tiers.nova.scheduler import refusal
from cpu_tiers.nova.seams import Function
from cpu_tiers.translators import BUILT_IN, Translator, added_groups, shares
from cpu_tiers.translators.compose import check_group
from cpu_tiers.translators.contract import functions_that_request


def groups_of(
    request_spec: objects.RequestSpec, translators: Mapping[str, Translator]
) -> CandidateQuery:
    """Return the groups that translators add to Nova's request for a server.

    :param translators: the translators that nova-scheduler calls, by name.
    :raises InvalidInput: the server is going to be created or resized, and flavor and image
        contradict each other, or an extra spec is malformed: below microversion 2.86, nova-api
        accepts any value.
    :raises ExtensionError: two translators request the same resource class.
    """
    try:
        server = refusal.server_of(request_spec)
        if not server.query_vcpu_shares:
            translators = without_shares(translators)
        return added_groups(server, translators)
    except InvalidInput as error:
        server = refusal.existing_server(request_spec, error)
        return added_groups(server, refusal.valid_translators(server, translators))


@functools.cache
def scheduler_translators() -> Mapping[str, Translator]:
    """Return the translators whose groups nothing else in nova-scheduler requests, by name.

    :raises ExtensionError: a translator does not load.
    """
    installed: dict[str, Translator] = {**BUILT_IN, **extensions.load(extensions.TRANSLATORS)}
    return {name: each for name, each in installed.items() if not functions_that_request(each)}


def without_shares(translators: Mapping[str, Translator]) -> dict[str, Translator]:
    """Return all translators except the translator of VCPU_SHARES."""
    return {name: each for name, each in translators.items() if each is not shares.translate}


def _add_groups(
    original: Function,
    cls: type,
    request_spec: objects.RequestSpec,
    enable_pinning_translate: bool = True,
) -> Any:
    """Add the groups of translators to Nova's request.

    A group with the suffix of a group in the request is merged into that group.
    """
    flavor = name_of(request_spec.flavor)
    with refusal.refusing(f"a translator for flavor {flavor}"):
        added = groups_of(request_spec, scheduler_translators())
    request = original(cls, request_spec, enable_pinning_translate)
    with refusal.refusing(f"a translator for flavor {flavor}"):
        for group in added.groups:
            _add(request, group, flavor)
        # A new list, since Nova's list belongs to the request spec, which is saved.
        request._same_subtree = [*request._same_subtree, *map(list, added.same_subtree)]
        custom_names.need(request, added.groups, translated=True)
    if not enable_pinning_translate:
        note(request, is_unexplained=True)
    return request


def _add(request: Any, group: RequestGroup, flavor: str) -> None:
    """Merge a group into the group of Nova's request with the same suffix.

    :raises ExtensionError: Nova and a translator request the same resource class, or the group
        has alternative traits.
    :raises InvalidInput: Placement would refuse the merged group.
    """
    if group.any_of:
        raise ExtensionError(
            "a translator requires any one of several traits, which Nova's request cannot express"
        )
    requested = request.get_request_group(group.suffix or None).resources
    if both := sorted(group.resources.keys() & requested.keys()):
        raise ExtensionError(f"Nova and a translator both request {', '.join(both)}")
    check_group(flavor, to_group(add_group(request, group), group.suffix))


SEAM = steps.request(_add_groups)
"""The seam for nova-scheduler. nova-api, which sends nothing and refuses no flavor here, has
:mod:`cpu_tiers.nova.api.shares_quota`."""
