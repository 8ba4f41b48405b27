"""Seams: what the scheduler asks of Placement, with what translators claim in it.

Those are our own for VCPU_SHARES, and all of other distributions; sizes, image
traits and the flavor's own groups are Nova's work.
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


def claims_of(
    request_spec: objects.RequestSpec, others: Mapping[str, Translator]
) -> CandidateQuery:
    """Return what translators add to a request of Nova's.

    While ``query_placement_for_vcpu_shares`` is off, our own looks only at
    flavors with our own extra spec: nothing changes for the rest.

    :param others: the translators of other distributions, by name.
    :raises InvalidInput: flavor and image make no sense; below microversion
        2.86 the API accepts anything.
    :raises ExtensionError: two translators claim the same class.
    """
    query: bool = CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares
    flavor = request_spec.flavor
    asks_ours = query or MULTIPLIER in extra_specs(flavor)
    translators = {"shares": shares.translate, **others} if asks_ours else others
    if not translators:
        return CandidateQuery(groups=())
    return claims(server_of(request_spec), translators)


def server_of(request_spec: objects.RequestSpec) -> ServerRequest:
    """Return the server that Nova asks a host for, as ours.

    :raises InvalidInput: a size is out of range.
    """
    return ServerRequest(
        flavor=to_flavor(request_spec.flavor),
        image=to_image(request_spec.image if "image" in request_spec else None),
        query_vcpu_shares=CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares,
    )


def _other_translators() -> dict[str, Translator]:
    installed = extensions.load(extensions.TRANSLATORS)
    return {name: one for name, one in installed.items() if name not in BUILT_IN}


def _ask_for_claims(original: Callable[..., Any]) -> Callable[..., Any]:
    """Add what translators claim to the groups of the same suffix, or as new ones."""
    others = _other_translators()

    @functools.wraps(original)
    def from_request_spec(
        cls: type, request_spec: objects.RequestSpec, enable_pinning_translate: bool = True
    ) -> Any:
        try:
            claimed = claims_of(request_spec, others)
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
