"""Seam: a server with allocations of two hosts gets only this host's virtual GPUs.

A server without a disk on the host has the allocations of both hosts while it moves
(:mod:`cpu_tiers.nova.compute.leftover_allocations`), and so has every server in an evacuation.
Nova's libvirt driver then looks for the GPUs of the other host in the provider tree of this host,
and refuses the server.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from cpu_tiers.model.names import MEMORY_MB, PCPU, VCPU
from cpu_tiers.nova.seams import Seam


def _choose_here(original: Callable[..., Any]) -> Callable[..., Any]:
    """Have Nova choose mediated devices by the allocations of this host."""

    @functools.wraps(original)
    def _allocate_mdevs(self: Any, allocations: Mapping[str, Any] | None) -> Any:
        return original(self, _of_this_host(self.provider_tree, allocations))

    return _allocate_mdevs


_OF_A_HOST = frozenset({VCPU, PCPU, MEMORY_MB})


def _of_this_host(tree: Any, allocations: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the allocations without those of another host.

    Allocations of another host include CPUs or memory. Without them, an unknown provider is a
    device of this host that has vanished, and Nova has to refuse it.

    :param tree: Nova's provider tree of this host; ``None`` before the first report.
    """
    if tree is None or not allocations:
        return allocations
    elsewhere = {uuid for uuid in allocations if not tree.exists(uuid)}
    if all(_OF_A_HOST.isdisjoint(allocations[uuid]["resources"]) for uuid in elsewhere):
        return allocations
    return {uuid: held for uuid, held in allocations.items() if uuid not in elsewhere}


SEAM = Seam(
    module="nova.virt.libvirt.driver",
    path="LibvirtDriver._allocate_mdevs",
    parameters=("self", "allocations"),
    wrap=_choose_here,
    why=(
        "Chooses the mediated devices of a guest by the allocations of the server; the wrapper "
        "leaves out the allocations of another host."
    ),
    unseen=(
        "If Nova reads the allocations of virtual GPUs elsewhere, a server without a disk and "
        "with a virtual GPU cannot move."
    ),
)
"""The seam for nova-compute."""
