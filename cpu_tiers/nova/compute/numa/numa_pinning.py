"""Seams: nova-compute pins a server on the NUMA nodes of its allocations.

Two functions of the resource tracker make the claim for boot, unshelve, resize, migration and
evacuation. Nova passes the allocations of the server to both, but does not use them to pin. A
rebuild in place makes no claim, and the revert of a resize restores the old pins: neither comes
through these functions.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from nova import exception, objects
from nova.virt import hardware

from cpu_tiers.guest.cell_places import NotAllocated, allocated_places
from cpu_tiers.nova.convert_numa import to_guest_topology
from cpu_tiers.nova.numa.numa_fit import SEAMS as FIT
from cpu_tiers.nova.numa.numa_fit import Requests, Ways, allocated
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.protocols import NovaTree, ResourceTracker
from cpu_tiers.nova.seams import Function, seam

ServerAllocations = Mapping[str, Mapping[str, Any]]
"""The allocations of one consumer in Nova's shape, by the uuid of the provider."""


def _pin(original: Function, self: ResourceTracker, *args: Any, **kwargs: Any) -> Any:
    # The wrapped functions have "allocations" at different positions, and Nova's callers name
    # some arguments and not others.
    given = inspect.signature(original).bind(self, *args, **kwargs).arguments
    allocations = given["allocations"] or {}
    is_unknown = allocations and self.provider_tree is None
    if is_unknown and CONF.compute.enable_numa_reporting_to_placement:
        raise exception.ComputeResourcesUnavailable(
            reason="nova-compute has not reached Placement since it started, and so does not"
            " know the NUMA nodes of which the server has allocations"
        )
    ways = functools.partial(_ways, self.provider_tree, given["nodename"], allocations)
    policies = functools.partial(_with_policies, given["instance"], given.get("new_flavor"))
    with allocated(ways, policies):
        return original(self, *args, **kwargs)


def _ways(
    tree: NovaTree | None,
    nodename: str,
    allocations: ServerAllocations,
    guest: objects.InstanceNUMATopology,
) -> Ways | None:
    """Return the ways to place a guest on the NUMA nodes of its allocations.

    :returns: ``None`` for a guest without allocations of a node: Nova then places the guest.
    :raises nova.exception.ComputeResourcesUnavailable: the allocations of a node are not what a
        cell of the guest needs. Nova then tries another host.
    """
    try:
        return allocated_places(to_guest_topology(guest), nodename, _by_name(tree, allocations))
    except NotAllocated as error:
        raise exception.ComputeResourcesUnavailable(reason=str(error)) from error


def _with_policies(
    instance: objects.Instance, new_flavor: objects.Flavor | None, requests: Requests
) -> Iterator[Requests]:
    """Yield the PCI requests with each NUMA affinity policy that nova-scheduler may have used.

    nova-scheduler chooses NUMA nodes by the request spec, which has the policies of flavor and
    image. nova-compute does not have the request spec, and Nova's ``_move_claim`` makes the
    requests of the flavor anew, with the policies of ``[pci] alias``.
    A live migration takes the devices by the requests of the server, so they change as well.
    """
    server_requests = _of_flavor(instance.pci_requests.requests if instance.pci_requests else ())
    changed = (*_of_flavor(requests), *server_requests)
    novas = [request.numa_policy for request in changed]
    for find in _policies(instance, new_flavor, server_requests):
        for request, policy in zip(changed, novas, strict=True):
            request.numa_policy = find(request.alias_name, policy)
        yield requests
    for request, policy in zip(changed, novas, strict=True):
        request.numa_policy = policy


def _policies(
    instance: objects.Instance, new_flavor: objects.Flavor | None, server_requests: Requests
) -> Iterator[Callable[[str, str | None], str | None]]:
    """Yield functions that take the alias and Nova's policy of a request, and return a policy."""
    if new_flavor and new_flavor.id == instance.flavor.id:
        # After a rebuild, the request spec still has the policy of the former image.
        policies = {request.alias_name: request.numa_policy for request in server_requests}
        yield policies.get
    yield lambda alias, policy: policy  # a resize makes the request spec anew, as _move_claim does
    # A server may have lost the policy in a move before its host reported NUMA nodes.
    flavor = new_flavor or instance.flavor
    stated = hardware.get_pci_numa_policy_constraint(flavor, instance.image_meta)
    if stated:
        yield lambda alias, policy: stated


def _of_flavor(requests: Requests) -> Requests:
    return [request for request in requests if request.source == request.FLAVOR_ALIAS]


def _by_name(
    tree: NovaTree | None, allocations: ServerAllocations
) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the name of each provider of this host and its allocated amounts.

    After an evacuation the server also has allocations of its source host, whose providers are
    not in the tree of this host.
    """
    for uuid, allocation in allocations.items():
        if tree is not None and tree.exists(uuid):
            yield tree.data(uuid).name, allocation["resources"]


SEAMS = (
    *FIT,
    seam(
        "nova.compute.resource_tracker:ResourceTracker.instance_claim",
        "self, context, instance, nodename, allocations, limits=None",
        _pin,
    ),
    seam(
        "nova.compute.resource_tracker:ResourceTracker._move_claim",
        "self, context, instance, new_flavor, nodename, migration, allocations, move_type=None,"
        " image_meta=None, limits=None",
        _pin,
    ),
)
