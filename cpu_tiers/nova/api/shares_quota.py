"""Seams that check the VCPU_SHARES of a server against the unified limits of its project.

Nova takes the amounts that nova-api checks from ``ResourceRequest.from_request_spec``. nova-api
sends none of these requests to Placement. For the unshelving of a server, nova-api checks only
whether the project exceeds a limit already, with amounts of 0.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from typing import Any

from nova import exception, objects
from nova.limit import placement
from nova.limit.utils import should_enforce
from oslo_limit.exception import ProjectOverLimit
from oslo_log import log as logging

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import steps
from cpu_tiers.nova.convert import add_group, field, name_of, to_flavor, to_image
from cpu_tiers.nova.seams import Function, seam
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.contract import as_existing
from cpu_tiers.translators.shares import requested_shares

LOG = logging.getLogger(__name__)


def shares_of(request_spec: objects.RequestSpec) -> int:
    """Return the VCPU_SHARES that nova-scheduler is going to claim for a server.

    nova-scheduler refuses a new server with a faulty flavor. Of a server that exists,
    nova-scheduler claims what the faults are not about.
    """
    server = ServerRequest(
        flavor=to_flavor(request_spec.flavor), image=to_image(field(request_spec, "image"))
    )
    try:
        return requested_shares(server)
    except InvalidInput:
        from cpu_tiers.nova.convert_numa import to_guest_cpus  # few flavors are faulty

        guest = to_guest_cpus(field(request_spec, "numa_topology"), request_spec.flavor.vcpus)
        return requested_shares(as_existing(server, guest))


def _shares(request_spec: objects.RequestSpec) -> int:
    """Return the VCPU_SHARES of a server; 0 after a failure: Nova decides without shares."""
    try:
        return shares_of(request_spec)
    except Exception as error:
        name = name_of(request_spec.flavor)
        LOG.exception("nova-api counts no shares of flavor %s for the quota: %r", name, error)
        return 0


def _count_shares(
    original: Function,
    cls: type,
    request_spec: objects.RequestSpec,
    enable_pinning_translate: bool = True,
) -> Any:
    """Add the shares that Nova's request lacks."""
    request = original(cls, request_spec, enable_pinning_translate)
    # Nova reads the shares that a flavor states.
    if VCPU_SHARES not in request.merged_resources() and (shares := _shares(request_spec)):
        add_group(request, RequestGroup(resources={VCPU_SHARES: shares}))
    return request


def _refuse_unshelving(
    original: Function,
    context: Any,
    instance: objects.Instance,
    request_spec: objects.RequestSpec,
) -> None:
    original(context, instance, request_spec)
    if shares := _shares(request_spec):
        _check(context, instance.project_id, shares)


def _check(context: Any, project: str, shares: int) -> None:
    """Check that a project may have this amount of shares more.

    If Keystone or Placement does not answer, the server stays offloaded, as in Nova, whose own
    check of the limits fails then.

    :raises TooManyInstances: the project exceeds its limit; nova-api answers 403.
    """
    try:
        enforcer = placement._get_enforcer(context, project)
        enforcer.enforce(project, {f"class:{VCPU_SHARES}": shares})
    except ProjectOverLimit as error:
        if should_enforce(error):
            raise exception.TooManyInstances(str(error)) from error


SEAMS = (
    steps.request(_count_shares),
    seam(
        "nova.compute.api:API._check_quota_unshelve_offloaded",
        "context, instance, request_spec",
        _refuse_unshelving,
    ),
    seam("nova.limit.placement:_get_enforcer", "context, project_id"),
)
