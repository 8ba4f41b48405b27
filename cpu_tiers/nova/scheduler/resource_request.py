"""Seams: what the scheduler asks of Placement, with what translators claim in it.

Every translator is called whose groups Nova does not request already
(:func:`cpu_tiers.translators.contract.already_requested_by`): of the built-in
translators that is the translator of VCPU_SHARES.
``ResourceRequest.from_request_spec`` is what boot, resize, every kind of
migration, evacuation and unshelving have in common.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Mapping
from typing import Any

from nova import exception, objects

from cpu_tiers import extensions
from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import CpuTiersError, ExtensionError
from cpu_tiers.extra_specs.shares import MULTIPLIER
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.scheduler import custom_names
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import BUILT_IN, ServerRequest, Translator, claims, shares
from cpu_tiers.translators.compose import check_group
from cpu_tiers.translators.contract import functions_that_request


def claims_of(
    request_spec: objects.RequestSpec, translators: Mapping[str, Translator]
) -> CandidateQuery:
    """Return what translators add to a request of Nova's.

    :param translators: those that nova-scheduler calls, by name.
    :raises InvalidInput: flavor and image make no sense; below microversion
        2.86 the API accepts anything.
    :raises ExtensionError: two translators claim the same class.
    """
    if not _looks_at_shares(request_spec.flavor):
        translators = {
            name: translator
            for name, translator in translators.items()
            if translator is not shares.translate
        }
    if not translators:
        return CandidateQuery(groups=())
    return claims(server_of(request_spec), translators)


def _looks_at_shares(flavor: objects.Flavor) -> bool:
    """Tell whether the translator of shares is called for a flavor.

    While ``query_placement_for_vcpu_shares`` is off, the translator would only
    check the extra specs. A flavor without our own extra spec is Nova's to
    judge: nothing changes for such flavors while our options are off.
    """
    query: bool = CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares
    return query or MULTIPLIER in extra_specs(flavor)


def server_of(request_spec: objects.RequestSpec) -> ServerRequest:
    """Return the server that Nova asks a host for, as ours.

    :raises InvalidInput: a size is out of range.
    """
    return ServerRequest(
        flavor=to_flavor(request_spec.flavor),
        image=to_image(request_spec.image if "image" in request_spec else None),
        query_vcpu_shares=CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares,
    )


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


def _ask_for_claims(original: Callable[..., Any]) -> Callable[..., Any]:
    """Add what translators claim to the groups of the same suffix, or as new ones."""
    translators = scheduler_translators()

    @functools.wraps(original)
    def from_request_spec(
        cls: type, request_spec: objects.RequestSpec, enable_pinning_translate: bool = True
    ) -> Any:
        try:
            claimed = claims_of(request_spec, translators)
            request = original(cls, request_spec, enable_pinning_translate)
            for group in claimed.groups:
                _add(request, group, request_spec.flavor.name)
        except CpuTiersError as error:
            # The error that leaves the server as it was in every operation, and that brings
            # its reason to the user in all but resize.
            raise exception.NoValidHost(reason=str(error)) from error
        # Nova's list is that of the request spec, which is kept.
        request._same_subtree = [*request._same_subtree, *map(list, claimed.same_subtree)]
        custom_names.need(request, claimed.groups)
        return request

    return from_request_spec


def _add(request: Any, group: RequestGroup, flavor: str) -> None:
    """Merge a group into the one of Nova's that has its suffix.

    :raises ExtensionError: Nova claims a class itself.
    :raises InvalidInput: Placement would refuse what comes of it.
    """
    if group.any_of:
        raise ExtensionError("a translator is content with one of several traits; Nova is not")
    theirs = request.get_request_group(group.suffix or None)
    if both := sorted(group.resources.keys() & theirs.resources.keys()):
        raise ExtensionError(f"Nova and a translator both claim {', '.join(both)}")
    theirs.resources.update(group.resources)
    theirs.required_traits |= group.required
    theirs.forbidden_traits |= group.forbidden
    merged = RequestGroup(
        suffix=group.suffix,
        resources=theirs.resources,
        required=frozenset(theirs.required_traits),
        forbidden=frozenset(theirs.forbidden_traits),
    )
    check_group(flavor, merged)


CLAIMS = Seam(
    module="nova.scheduler.utils",
    path="ResourceRequest.from_request_spec",
    parameters=("cls", "request_spec", "enable_pinning_translate"),
    wrap=_ask_for_claims,
)
"""Servers ask for what translators claim. Not for nova-api: a class without a registered
limit is a 403 there with the unified limits of some releases."""
