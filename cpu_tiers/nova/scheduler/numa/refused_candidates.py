"""Seam that lets the filters judge candidates anew after a server of the request took a device.

Nova's filters remove the candidates that they refuse from a host, for all servers of a request.
But Nova takes a PCI device near the server before a device farther away
(``PciDeviceStats._filter_pools_for_numa_cells``), so a candidate with a farther device is right
as soon as a former server of the request has taken the near device.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from nova import objects

from cpu_tiers.nova.numa.candidate_cells import Candidate, has_nodes
from cpu_tiers.nova.scheduler.numa.candidate_order import LEFT, put_best_first, sort_seam

if TYPE_CHECKING:
    from cpu_tiers.nova.protocols import HostState

_REFUSED = "cpu_tiers_refused"
"""The attribute of a host state with the candidates that the filters have refused."""


class _Refused(NamedTuple):
    """The candidates of a host that the filters refused for a server.

    :param left: the provider summaries that the server before had left. Another object takes their
        place when a server of the request takes a part of the host.
    """

    candidates: list[Candidate]
    left: Mapping[str, Any] | None


def _judge_anew(original: Callable[..., object]) -> Callable[..., Any]:
    """Give refused candidates back to a host that a server of the request has just taken."""

    @functools.wraps(original)
    def _get_sorted_hosts(
        self: Any, spec_obj: objects.RequestSpec, host_states: Iterable[HostState], index: int
    ) -> Any:
        requests = spec_obj.pci_requests if "pci_requests" in spec_obj else None
        if not requests or not requests.requests:
            return original(self, spec_obj, host_states, index)
        before: list[tuple[Any, list[Candidate]]] = []

        def candidates_back(host: HostState) -> Any:
            _give_back(host, spec_obj)
            before.append((host, getattr(host, "allocation_candidates", [])))
            return host

        hosts = original(self, spec_obj, map(candidates_back, host_states), index)
        for host, candidates in before:
            _keep_refused(host, candidates)
        return hosts

    return _get_sorted_hosts


def _give_back(host: HostState, spec_obj: objects.RequestSpec) -> None:
    """Add the refused candidates that Placement still has room for, if the host has changed."""
    refused: _Refused | None = getattr(host, _REFUSED, None)
    if refused is None or getattr(host, LEFT, None) is refused.left:
        return
    host.allocation_candidates = [*host.allocation_candidates, *refused.candidates]
    put_best_first(host, spec_obj)
    delattr(host, _REFUSED)


def _keep_refused(host: HostState, candidates: list[Candidate]) -> None:
    """Store the candidates with NUMA nodes that the filters have removed from a host."""
    kept = set(map(id, getattr(host, "allocation_candidates", [])))
    refused = [each for each in candidates if id(each) not in kept and has_nodes(each)]
    former: _Refused | None = getattr(host, _REFUSED, None)
    if former is not None:
        refused += former.candidates
    if refused:
        setattr(host, _REFUSED, _Refused(refused, getattr(host, LEFT, None)))


SEAM = sort_seam(wrap=_judge_anew)
"""The seam for nova-scheduler."""
