"""Brings a server of the twin to the place where the server of the life is.

A filter of nova-scheduler keeps the server to a host and to the interfaces of its ports. A wrapper
of the function by which Nova fits one guest cell keeps the server to its NUMA nodes. Both accept
what Nova accepts, or less.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from dataclasses import dataclass
from itertools import chain
from typing import Any

from nova.scheduler import filters


@dataclass
class Aim:
    """Where servers may go.

    :param host: the only host; empty for all hosts.
    :param cells: the host cell of each guest cell; empty for all cells.
    :param aware_only: the hosts that take no server without NUMA nodes: those that report NUMA
        nodes in the life.
    :param closed: the uuids of the providers of which no port may get bandwidth.
    """

    host: str = ""
    cells: tuple[int, ...] = ()
    aware_only: frozenset[str] = frozenset()
    closed: frozenset[str] = frozenset()

    def clear(self) -> None:
        """Let servers go anywhere."""
        self.host, self.cells = "", ()
        self.aware_only = self.closed = frozenset()


AIM = Aim()


class SteeringFilter(filters.BaseHostFilter):
    """Passes the hosts of :data:`AIM`."""

    RUN_ON_REBUILD = False

    def host_passes(self, host_state: Any, spec_obj: Any) -> bool:
        if not spec_obj.numa_topology and host_state.host in AIM.aware_only:
            return False
        host_state.allocation_candidates = [
            candidate
            for candidate in host_state.allocation_candidates
            if AIM.closed.isdisjoint(chain.from_iterable(candidate["mappings"].values()))
        ]
        return AIM.host in ("", host_state.host) and bool(host_state.allocation_candidates)


def steered(fit_cell: Any) -> Any:
    """Wrap Nova's ``_numa_fit_instance_cell``, which fits one guest cell on one host cell."""

    def fit(host_cell: Any, instance_cell: Any, *args: Any, **kwargs: Any) -> Any:
        number = 0 if 0 in instance_cell.total_cpus else len(AIM.cells) - 1
        if AIM.cells and AIM.cells[number] != host_cell.id:
            return None
        return fit_cell(host_cell, instance_cell, *args, **kwargs)

    return fit


FIT_CELL = "nova.virt.hardware._numa_fit_instance_cell"
"""What :func:`steered` wraps."""
