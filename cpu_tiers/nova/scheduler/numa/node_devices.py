"""The free PCI devices on the NUMA nodes of a host, which Placement does not tell.

Nova's ``hardware.numa_fit_instance_to_host`` leaves the host cells with PCI devices to the servers
that request devices.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nova import objects

from cpu_tiers.nova.numa.candidate_cells import Candidate, has_nodes, places_of

if TYPE_CHECKING:
    from cpu_tiers.nova.protocols import HostState


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The free PCI devices on the cells of a host, and whether a server requests devices.

    :param free: the number of free devices by host cell; cells without are left out.
    """

    free: Mapping[int, int]
    are_requested: bool

    @classmethod
    def of(cls, host: HostState, spec_obj: objects.RequestSpec) -> NodeDevices:
        """Return the devices of Nova's host state, for the server of a request spec."""
        free: Counter[int] = Counter()
        for pool in host.pci_stats.pools if host.pci_stats else ():
            if pool["numa_node"] is not None:
                free[pool["numa_node"]] += pool["count"]
        requests = spec_obj.pci_requests if "pci_requests" in spec_obj else None
        return cls(+free, bool(requests and requests.requests))

    def cost(self, cells: Sequence[int]) -> tuple[int, int]:
        """Return two costs of a choice of host cells; smaller numbers are better.

        For a server that requests no devices: the number of cells with free devices, and the
        number of free devices. For a server that requests devices: the same with a minus.
        """
        counts = [self.free[cell] for cell in cells if cell in self.free]
        sign = -1 if self.are_requested else 1
        return sign * len(counts), sign * sum(counts)


def equals_of_first(host: HostState, spec_obj: objects.RequestSpec) -> list[Candidate]:
    """Return the first candidate of a host, with the next ones that have an equal first cost.

    :param host: a host state with at least one candidate.
    """
    candidates: list[Candidate] = host.allocation_candidates
    if not has_nodes(candidates[0]):
        return candidates
    devices = NodeDevices.of(host, spec_obj)
    if not devices.free:
        return candidates

    def cost(candidate: Candidate) -> int:
        return devices.cost(cells_of(candidate))[0]

    return list(next(itertools.groupby(candidates, cost))[1])


def cells_of(candidate: Candidate) -> list[int]:
    """Return the host cells of a candidate; none if the candidate has no NUMA nodes."""
    return [place.host_cell for place in places_of(candidate["mappings"]) or ()]
