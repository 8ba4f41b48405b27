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

from cpu_tiers.guest.cell_places import NotAllocated, allocated_places
from cpu_tiers.nova.convert_numa import to_guest_topology
from cpu_tiers.nova.numa_fit import SEAMS as FIT
from cpu_tiers.nova.numa_fit import Ways, allocated
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Seam

Allocations = Mapping[str, Mapping[str, Any]]
"""The allocations of one consumer in Nova's shape, by the uuid of the provider."""


def _pin(original: Callable[..., Any]) -> Callable[..., Any]:
    # The wrapped functions have "allocations" at different positions, and Nova's callers name
    # some arguments and not others.
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def claim(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(self, *args, **kwargs).arguments
        allocations = given["allocations"] or {}
        is_unknown = allocations and self.provider_tree is None
        if is_unknown and CONF.compute.enable_numa_reporting_to_placement:
            raise exception.ComputeResourcesUnavailable(
                reason="nova-compute has not reached Placement since it started, and so does not"
                " know the NUMA nodes of which the server has allocations"
            )
        ways = functools.partial(_ways, self.provider_tree, given["nodename"], allocations)
        with allocated(ways):
            return original(self, *args, **kwargs)

    return claim


def _ways(
    tree: Any, nodename: str, allocations: Allocations, guest: objects.InstanceNUMATopology
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


def _by_name(tree: Any, allocations: Allocations) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield the name of each provider of this host and its allocated amounts.

    After an evacuation the server also has allocations of its source host, whose providers are
    not in the tree of this host.
    """
    for uuid, allocation in allocations.items():
        if tree is not None and tree.exists(uuid):
            yield tree.data(uuid).name, allocation["resources"]


SEAMS = (
    *FIT,
    Seam(
        module="nova.compute.resource_tracker",
        path="ResourceTracker.instance_claim",
        parameters=(
            "self",
            "context",
            "instance",
            "nodename",
            "allocations",
            "limits=None",
        ),
        wrap=_pin,
        why=(
            "Makes the claim of nova-compute for boot and unshelving; the wrapper pins the "
            "server on the NUMA nodes of its allocations."
        ),
        unseen=(
            "If the claim does not choose the pins any more, a guest is pinned to other nodes "
            "than it has allocated."
        ),
    ),
    Seam(
        module="nova.compute.resource_tracker",
        path="ResourceTracker._move_claim",
        parameters=(
            "self",
            "context",
            "instance",
            "new_flavor",
            "nodename",
            "migration",
            "allocations",
            "move_type=None",
            "image_meta=None",
            "limits=None",
        ),
        wrap=_pin,
        why=(
            "Makes the claim of nova-compute for resize, migration and evacuation; the wrapper "
            "pins the server on the NUMA nodes of its allocations."
        ),
        unseen=(
            "If the claim does not choose the pins any more, a guest is pinned to other nodes "
            "than it has allocated."
        ),
    ),
)
