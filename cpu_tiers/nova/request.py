"""Seams: what the scheduler asks of Placement, with VCPU_SHARES in it.

``ResourceRequest.from_request_spec`` is what boot, resize, every kind of
migration, evacuation and unshelving have in common.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import logging
from collections.abc import Callable
from typing import Any
from weakref import WeakSet

from keystoneauth1.exceptions import ClientException
from nova import exception, objects

from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER
from cpu_tiers.model.names import VCPU_SHARES, is_custom
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam
from cpu_tiers.translators import ServerRequest, shares

LOG = logging.getLogger(__name__)


def vcpu_shares(request_spec: objects.RequestSpec) -> int:
    """Return the VCPU_SHARES to ask for, 0 where it is none of our business.

    While ``query_placement_for_vcpu_shares`` is off, flavors without our own
    extra spec are not even looked at: nothing changes for them.

    :raises InvalidInput: flavor and image make no sense; below microversion
        2.86 the API accepts anything.
    """
    query: bool = CONF[filter_scheduler.GROUP].query_placement_for_vcpu_shares
    flavor = request_spec.flavor
    if not query and MULTIPLIER not in extra_specs(flavor):
        return 0
    image = request_spec.image if "image" in request_spec else None
    server = ServerRequest(
        flavor=to_flavor(flavor), image=to_image(image), query_vcpu_shares=query
    )
    claimed = sum(group.resources[VCPU_SHARES] for group in shares.translate(server))
    if not claimed or server.own_groups.amount(VCPU_SHARES) is not None:
        return 0  # what the flavor states itself replaces what we would claim
    return claimed


def _ask_for_shares(original: Callable[..., Any]) -> Callable[..., Any]:
    """Add VCPU_SHARES to the unsuffixed group, which may use the whole tree."""

    @functools.wraps(original)
    def from_request_spec(
        cls: type, request_spec: objects.RequestSpec, enable_pinning_translate: bool = True
    ) -> Any:
        try:
            amount = vcpu_shares(request_spec)
        except InvalidInput as error:
            # The error that leaves the server as it was in every operation, and that brings
            # its reason to the user in all but resize.
            raise exception.NoValidHost(reason=str(error)) from error
        request = original(cls, request_spec, enable_pinning_translate)
        if amount:
            request.get_request_group(None).add_resource(VCPU_SHARES, amount)
        return request

    return from_request_spec


def _ensure_class(original: Callable[..., Any]) -> Callable[..., Any]:
    """Create the resource class before the first query that names it.

    Placement refuses a query with an unknown class, and until the first host
    reports shares nobody has told it of ours.
    """
    ensured: WeakSet[Any] = WeakSet()

    @functools.wraps(original)
    def get_allocation_candidates(self: Any, context: Any, resources: Any) -> Any:
        asked = self not in ensured and VCPU_SHARES in resources.merged_resources()
        if asked and _create_class(self, context):
            ensured.add(self)
        return original(self, context, resources)

    return get_allocation_candidates


def _create_class(client: Any, context: Any) -> bool:
    """Create the class, or tell that it could not be: the query goes on and fails by itself.

    Nova's own ``_ensure_resource_classes`` does not tell when nobody answers.
    """
    if not is_custom(VCPU_SHARES):
        return True  # Placement has it
    url = f"/resource_classes/{VCPU_SHARES}"
    try:
        response = client.put(url, None, version="1.7", global_request_id=context.global_id)
        outcome = "" if response else f"{response.status_code} {response.text}"
    except ClientException as error:
        outcome = str(error)
    if outcome:
        LOG.warning("Placement did not create %s: %s", VCPU_SHARES, outcome)
    return not outcome


SHARES = Seam(
    module="nova.scheduler.utils",
    path="ResourceRequest.from_request_spec",
    parameters=("cls", "request_spec", "enable_pinning_translate"),
    wrap=_ask_for_shares,
)
"""Servers ask for VCPU_SHARES. Not for nova-api: a class without a registered
limit is a 403 there with the unified limits of some releases."""

RESOURCE_CLASS = Seam(
    module="nova.scheduler.client.report",
    path="SchedulerReportClient.get_allocation_candidates",
    parameters=("self", "context", "resources"),
    wrap=_ensure_class,
)
"""The resource class exists before it is asked for."""
