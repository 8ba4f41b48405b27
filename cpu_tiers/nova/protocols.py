"""Protocols: what cpu-tiers uses of classes of Nova, which have no types for mypy.

Nova names these attributes alike from release 31 on; a service verifies the attributes that are
not public (:mod:`cpu_tiers.nova.features`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from nova import objects

if TYPE_CHECKING:
    from requests import Response


class ResourceRequest(Protocol):
    """Nova's ``ResourceRequest``: the query for allocation candidates."""

    _rg_by_id: dict[str | None, objects.RequestGroup]
    _root_required: set[str]
    _root_forbidden: set[str]
    _same_subtree: list[list[str]]
    group_policy: str | None
    cpu_pinning_requested: bool
    to_querystring: Callable[[], str]

    def get_request_group(self, ident: str | None) -> objects.RequestGroup:
        """Return the group of a suffix, which is new if there was none."""


class HostState(Protocol):
    """Nova's ``HostState``: a host as known to nova-scheduler."""

    uuid: str
    host: str
    aggregates: list[objects.Aggregate]
    allocation_candidates: list[Mapping[str, Any]]
    pci_stats: Any


class HostManager(Protocol):
    """Nova's ``HostManager``, which knows the aggregates of all hosts."""

    _get_aggregates_info: Callable[[str], list[objects.Aggregate]]


class ReportClient(Protocol):
    """Nova's ``SchedulerReportClient``: the client of Placement."""

    get: Callable[..., Response]
    put: Callable[..., Response]
    post: Callable[..., Response]
    get_allocs_for_consumer: Callable[..., dict[str, Any]]
    get_allocations_for_provider_tree: Callable[..., dict[str, Any]]
    get_providers_in_tree: Callable[..., list[dict[str, Any]]]
    get_provider_traits: Callable[..., Any]


class ProviderData(Protocol):
    """A copy of a provider in a :class:`NovaTree`."""

    uuid: str
    name: str
    parent_uuid: str | None
    generation: int | None
    inventory: Mapping[str, Mapping[str, float]]
    traits: Collection[str]


class NovaTree(Protocol):
    """Nova's ``ProviderTree``: the providers of a host, each by its name or uuid."""

    data: Callable[[str], ProviderData]
    exists: Callable[[str], bool]
    get_provider_uuids: Callable[[str], list[str]]
    new_child: Callable[[str, str | None], str]
    remove: Callable[[str], None]
    update_inventory: Callable[[str, Mapping[str, Mapping[str, float]]], bool]
    add_traits: Callable[..., None]
    remove_traits: Callable[..., None]


class ResourceTracker(Protocol):
    """Nova's ``ResourceTracker``, which reports a host and claims for its servers."""

    host: str
    provider_configs: Mapping[str, Mapping[str, Any]]
    provider_tree: NovaTree | None
    reportclient: ReportClient
