"""Seams for ports that request only traits, or any one of several traits (decision D88).

nova-compute sends the query for a port that is attached to a running server, and looks for the
provider of a port in the allocations of the server, where a port without amounts has none: the
revert of a resize would put the server into ERROR, and the detachment of a port would fail after
the port is gone.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Iterable, Mapping
from typing import Any

from nova import exception, objects
from oslo_log import log as logging

from cpu_tiers.model.port import split_requirement
from cpu_tiers.nova import port_queries
from cpu_tiers.nova.protocols import ReportClient
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)


def _mark_attached(original: Function, cls: type, *args: Any, **kwargs: Any) -> Any:
    """Note in the request for an attached port which groups Placement would not understand.

    Placement answers no query without an amount.
    """
    request = original(cls, *args, **kwargs)
    if not any(group.resources for group in request._rg_by_id.values()):
        raise exception.InterfaceAttachResourceAllocationFailed(
            "The port requests only traits, and cannot be attached to a server that exists:"
            " create the server with the port, or give the QoS policy of the port a minimum"
            " bandwidth above 0"
        )
    port_queries.mark(request, request._rg_by_id)
    return request


def _map_all_ports(
    original: Function,
    context: object,
    report_client: ReportClient,
    request_spec: objects.RequestSpec,
    allocation: Mapping[str, Any],
) -> None:
    """Map also the groups to providers that Nova does not find in the allocations."""
    groups = (request_spec.maps_requested_resources and request_spec.requested_resources) or ()
    for group in groups:
        group.strip_zeros()  # as nova-scheduler does before its query
    if all(_is_known_to_nova(group) for group in groups):
        original(context, report_client, request_spec, allocation)
        return
    traits = _traits_of_trees(report_client, context, allocation, groups)
    with_amounts = [group for group in groups if group.resources]
    # Nova's own search, for the groups that it can find. The groups are the same objects.
    objects.RequestSpec(requested_resources=with_amounts).map_requested_resources_to_providers(
        allocation, traits
    )
    for group in groups:
        if not group.resources:
            group.provider_uuids = [_provider_of(group, traits)]


def _is_known_to_nova(group: objects.RequestGroup) -> bool:
    operators = {split_requirement(text)[0] for text in group.required_traits}
    return bool(group.resources) and operators <= {""}


def _traits_of_trees(
    client: ReportClient,
    context: object,
    allocation: Iterable[str],
    groups: Iterable[objects.RequestGroup],
) -> dict[str, set[str]]:
    """Return the entries of ``required`` that each provider of the server's host fulfills.

    :returns: by the uuid of the provider, with the traits of the provider.
    """
    required = {text for group in groups for text in group.required_traits}
    fulfilled: dict[str, set[str]] = {}
    for allocated in allocation:
        if allocated in fulfilled:
            continue
        for provider in client.get_providers_in_tree(context, allocated):
            traits = client.get_provider_traits(context, provider["uuid"]).traits
            entries = {text for text in required if _fulfills(traits, text)}
            fulfilled[provider["uuid"]] = {*traits, *entries}
    return fulfilled


def _fulfills(traits: Iterable[str], text: str) -> bool:
    operator, named = split_requirement(text)
    return named.isdisjoint(traits) == (operator == "!")


def _provider_of(group: objects.RequestGroup, traits: Mapping[str, set[str]]) -> str:
    """Return the provider that fulfills most of a group's traits.

    A device may have lost a trait while the server was away. The server must get back all the
    same, and the port with it.
    """
    required = group.required_traits
    provider = max(sorted(traits), key=lambda uuid: len(required & traits[uuid]))
    if missing := required - traits[provider]:
        LOG.warning(
            "Port %s goes back to provider %s, which lacks %s",
            group.requester_id,
            provider,
            ", ".join(sorted(missing)),
        )
    return provider


def _free_amounts(
    original: Function,
    self: ReportClient,
    context: object,
    consumer_uuid: str,
    resources: Mapping[str, Mapping[str, Mapping[str, int]]],
) -> None:
    """Free only what a port has allocated: nothing of a provider without an amount."""
    amounts = {
        uuid: {name: amount for name, amount in part["resources"].items() if amount}
        for uuid, part in resources.items()
    }
    parts = {uuid: {"resources": part} for uuid, part in amounts.items() if part}
    original(self, context, consumer_uuid, parts)


_CLIENT = "nova.scheduler.client.report:SchedulerReportClient"

SEAMS = (
    seam(
        "nova.scheduler.utils:fill_provider_mapping_based_on_allocation",
        "context, report_client, request_spec, allocation",
        _map_all_ports,
    ),
    seam(
        f"{_CLIENT}.remove_resources_from_instance_allocation",
        "self, context, consumer_uuid, resources",
        _free_amounts,
    ),
    seam(f"{_CLIENT}.get_providers_in_tree", "self, context, uuid"),
    seam(
        "nova.scheduler.utils:ResourceRequest.from_request_groups",
        "cls, request_groups, request_level_params, group_policy",
        _mark_attached,
    ),
    *port_queries.SEAMS,
)
