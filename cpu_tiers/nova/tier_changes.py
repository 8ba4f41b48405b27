"""A change of the tier of a running server: the steps that nova-api and nova-compute share.

nova-api claims the difference in Placement and changes the flavor of the server; nova-compute
sets the weight of the guest, and gives back what the server holds beyond its flavor (decision
D113). Each step leaves a server that holds at least what its flavor requests.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import contextlib
import copy
import time
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import Any

from nova import objects, rpc
from nova.compute import utils as compute_utils
from nova.objects.fields import NotificationPhase
from oslo_log import log as logging

from cpu_tiers import oversold
from cpu_tiers.accounting.missing_shares import shares_of
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.nova.consumers import to_owner
from cpu_tiers.nova.excesses import VERSION
from cpu_tiers.nova.protocols import ReportClient
from cpu_tiers.nova.seams import seam
from cpu_tiers.translators.shares import divide

LOG = logging.getLogger(__name__)

PENDING = "cpu_tiers_pending_change"
"""The key of the instance's system metadata with the id of the request whose change nova-compute
has still to carry out. nova-api writes the key, and nova-compute removes it."""

EVENT = "live_tier_change"
"""The event of the server's action, without an end while nova-compute has not set the weight."""

NO_EVENT = "no_live_tier_change"
"""The event of a resize that is refused or left to Nova; its details say why."""

_LONGEST_SECONDS = 30.0
"""So long, a write is repeated that Placement refuses because of other claims."""

_OF_CONSUMER = "consumer generation conflict"
"""The words by which Nova, too, knows Placement's refusal to write a consumer."""

Body = dict[str, Any]
"""The allocations of a consumer in the form of Placement's API."""


def is_live(migration: objects.Migration | None) -> bool:
    """Tell whether a migration record is of a change of the tier of a running server.

    Nova sets ``dest_node`` when the destination host claims a server. Without ``dest_node``, the
    resource tracker counts the server once, although source and destination are the same host.
    """
    return bool(
        migration
        and migration.migration_type == "resize"
        and migration.source_compute == migration.dest_compute
        and not migration.dest_node
    )


def root_of(instance: objects.Instance) -> str:
    """Return the uuid of the root provider of the host of a server."""
    node = objects.ComputeNode.get_by_host_and_nodename(
        instance._context.elevated(), instance.host, instance.node
    )
    return str(node.uuid)


def shares_on(
    client: ReportClient, root: str, held: Body, instance: objects.Instance, flavor: objects.Flavor
) -> dict[str, int]:
    """Return the shares that a server must hold with a flavor, by the uuid of the provider.

    The shares are where the server holds VCPU: on the root provider, or on NUMA nodes in
    proportion to the VCPU. Shares that the former flavor stated for another provider stay there.

    :param held: the allocations of the server, with those of another host after an evacuation.
    :raises InvalidInput: a size of the flavor is out of range.
    """
    amounts = {uuid: each["resources"] for uuid, each in held["allocations"].items()}
    places = {uuid for uuid, each in amounts.items() if VCPU in each or VCPU_SHARES in each}
    if len(places) > 1:
        tree = client.get_providers_in_tree(instance._context, root)
        places &= {provider["uuid"] for provider in tree}
    with_shares = {uuid for uuid in places if VCPU_SHARES in amounts[uuid]}
    vcpus = {uuid: amounts[uuid][VCPU] for uuid in places if VCPU in amounts[uuid]}
    wanted = shares_of(to_owner(instance, flavor), sum(vcpus.values()))
    if not vcpus or with_shares - set(vcpus):
        vcpus = dict.fromkeys(with_shares or {root}, 1)
    # Of equal providers, the provider with the most shares keeps the most after a rounding.
    order = sorted(vcpus, key=lambda uuid: (-amount(held, [uuid]), uuid))
    return dict(zip(order, divide(wanted, [vcpus[uuid] for uuid in order]), strict=True))


def amount(held: Body, providers: Iterable[str]) -> int:
    """Return the shares that a consumer holds of some providers."""
    held_of = held["allocations"]
    return sum(
        held_of[uuid]["resources"].get(VCPU_SHARES, 0) for uuid in providers if uuid in held_of
    )


def with_amounts(held: Body, shares: Mapping[str, int]) -> Body:
    """Return the allocations of a consumer with other shares on some providers."""
    body = copy.deepcopy(held)
    for uuid, amount in shares.items():
        resources = body["allocations"].setdefault(uuid, {"resources": {}})["resources"]
        resources.pop(VCPU_SHARES, None)
        resources.update({VCPU_SHARES: amount} if amount else {})
        if not resources:
            del body["allocations"][uuid]
    return body


def write(client: ReportClient, context: Any, bodies: Mapping[str, Body]) -> str:
    """Write the allocations of consumers in one request; return Placement's refusal or nothing.

    The generations of the consumers in the bodies make Placement refuse the request if another
    client has changed a consumer in the meantime.
    """
    deadline = time.monotonic() + _LONGEST_SECONDS
    while True:
        response = client.post(
            "/allocations", dict(bodies), version=VERSION, global_request_id=context.global_id
        )
        if response.status_code == HTTPStatus.NO_CONTENT:
            return ""
        refusal = f"{response.status_code} {response.text}"
        # Another client has changed a provider, and none of the consumers: the same again.
        is_busy = "placement.concurrent_update" in refusal and _OF_CONSUMER not in refusal
        if not is_busy or time.monotonic() > deadline:
            return refusal
        oversold.pause()


def notify(instance: objects.Instance, *actions: str) -> None:
    """Send the notifications of a resize, from which others make bills.

    :param actions: such as ``resize`` or ``resize_finish``, the names of versioned notifications.
    """
    legacy = {"resize_finish": "finish_resize", "resize_revert": "resize.revert"}
    context, host = instance._context, instance.host
    with _logged(instance):
        for action in actions:
            for phase in (NotificationPhase.START, NotificationPhase.END):
                compute_utils.notify_about_instance_usage(
                    rpc.get_notifier("compute", host),
                    context,
                    instance,
                    f"{legacy.get(action, action)}.{phase}",
                )
                compute_utils.notify_about_instance_action(
                    context, instance, host, action=action, phase=phase
                )


def notify_usage(instance: objects.Instance) -> None:
    """Send the usage of a server so far, with the flavor that it is about to lose."""
    with _logged(instance):
        notifier = rpc.get_notifier("compute", instance.host)
        compute_utils.notify_usage_exists(
            notifier, instance._context, instance, instance.host, current_period=True
        )


@contextlib.contextmanager
def _logged(instance: objects.Instance) -> Iterator[None]:
    """Log the failure of a notification: the change of the tier goes on."""
    try:
        yield
    except Exception as error:
        LOG.exception("The change of the tier is not notified: %r", error, instance=instance)


_CLIENT = "nova.scheduler.client.report:SchedulerReportClient"

SEAMS = (
    seam(f"{_CLIENT}.get_allocs_for_consumer", "self, context, consumer"),
    seam(f"{_CLIENT}.get_providers_in_tree", "self, context, uuid"),
    seam(f"{_CLIENT}.post", "self, url, data, version=None, global_request_id=None"),
    seam("nova.compute.manager:ComputeManager.inject_network_info", "self, context, instance"),
)
