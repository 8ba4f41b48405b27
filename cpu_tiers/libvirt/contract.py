"""What adds to a domain: the contract of ``cpu_tiers.domain_xml``.

A plugin is a callable that is given a :class:`Guest` and returns elements
that belong directly below ``<domain>``, in libvirt's names and namespaces
(https://libvirt.org/formatdomain.html). It edits nothing and does no I/O.

Elements of the same name are merged: ``<cputune>`` of two plugins becomes
one. What stands inside belongs to one plugin alone: two that write
``<cputune><shares>``, or the same attribute, are an
:class:`~cpu_tiers.errors.ExtensionError` that names both.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lxml.etree import _Element

from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The guest to describe, on its host.

    :param arch: architecture of the host, as libvirt names it.
    :param topology: the guest's NUMA nodes, where it has any.
    :param pinning: where the host keeps them, as many.
    :param realtime_priority: of real-time vCPUs, 1 to 99.
    """

    name: str
    flavor: Flavor
    image: Image | None = None
    arch: str
    host: ComputeHost
    topology: GuestTopology | None = None
    pinning: Pinning | None = None
    realtime_priority: int = 1

    @property
    def cells(self) -> tuple[tuple[GuestCell, CellPinning], ...]:
        """Return each NUMA node of the guest with its pinning; none without a topology."""
        if self.topology is None or self.pinning is None:
            return ()
        return tuple(zip(self.topology.cells, self.pinning.cells, strict=True))


DomainElements = Callable[[Guest], Iterable[_Element]]
