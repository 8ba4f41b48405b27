"""The contract of plugins that add elements to a domain: ``cpu_tiers.domain_xml``.

A plugin is a callable that takes a :class:`Guest` and returns elements for the top level of
``<domain>``, with the names and namespaces of libvirt
(https://libvirt.org/formatdomain.html). A plugin changes nothing and does no I/O.

Elements with equal names are merged: ``<cputune>`` of two plugins becomes a single element. Each
child element and each attribute belongs to a single plugin: if two plugins write
``<cputune><shares>``, or an attribute, the result is an
:class:`~cpu_tiers.errors.ExtensionError` with the names of both plugins.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from lxml.etree import _Element

from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The guest of a domain, on its host.

    :param arch: the architecture of the host, as libvirt names it.
    :param topology: the NUMA topology of the guest; ``None`` if the guest has none.
    :param pinning: the pinning of the topology, with as many cells.
    :param realtime_priority: the priority of real-time vCPUs, 1 to 99.
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
        """Return each cell of the guest with its pinning; empty for a guest without topology."""
        if self.topology is None or self.pinning is None:
            return ()
        return tuple(zip(self.topology.cells, self.pinning.cells, strict=True))


DomainElements = Callable[[Guest], Iterable[_Element]]
