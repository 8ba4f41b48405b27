"""Seams: nova-compute pins a server on the nodes that it holds, in every claim.

Boot, unshelve, resize, migration and evacuation all come through two functions
of the resource tracker. They are told what the server holds; Nova itself does
not look at it to pin. A rebuild in place claims nothing, and the revert of a
resize brings the old pins back: both are not asked.
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


def _pin(original: Callable[..., Any]) -> Callable[..., Any]:
    parameters = inspect.signature(original)

    @functools.wraps(original)
    def claim(self: Any, *args: Any, **kwargs: Any) -> Any:
        given = parameters.bind(self, *args, **kwargs).arguments
        held = given["allocations"] or {}
        if held and self.provider_tree is None and CONF.compute.enable_numa_reporting_to_placement:
            raise exception.ComputeResourcesUnavailable(
                reason="since this service started it could not tell Placement what the host has,"
                " and so does not know the NUMA nodes that the server holds"
            )
        with allocated(functools.partial(_ways, self.provider_tree, given["nodename"], held)):
            return original(self, *args, **kwargs)

    return claim


def _ways(
    tree: Any, nodename: str, allocations: Allocations, guest: objects.InstanceNUMATopology
) -> Ways | None:
    """Return the ways to place a guest on what it holds of this host; ``None`` for any.

    :raises nova.exception.ComputeResourcesUnavailable: it holds something else
        than it needs; Nova tries another host then.
    """
    try:
        return allocated_places(to_guest_topology(guest), nodename, _held(tree, allocations))
    except NotAllocated as error:
        raise exception.ComputeResourcesUnavailable(reason=str(error)) from error


def _held(tree: Any, allocations: Allocations) -> Iterator[tuple[str, Mapping[str, int]]]:
    """Yield what is held of each provider of this host, by its name.

    The source of an evacuation is in no tree of ours.
    """
    for uuid, allocation in allocations.items():
        if tree is not None and tree.exists(uuid):
            yield tree.data(uuid).name, allocation["resources"]


SEAMS = (
    *FIT,
    Seam(
        module="nova.compute.resource_tracker",
        path="ResourceTracker.instance_claim",
        parameters=("self", "context", "instance", "nodename", "allocations", "limits"),
        wrap=_pin,
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
            "move_type",
            "image_meta",
            "limits",
        ),
        wrap=_pin,
    ),
)
