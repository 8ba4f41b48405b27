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

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The guest to describe.

    :param arch: architecture of the host, as libvirt names it.
    :param shared_cpus: the host CPUs that shared vCPUs float over.
    """

    name: str
    flavor: Flavor
    image: Image | None = None
    arch: str
    shared_cpus: CpuSet


DomainElements = Callable[[Guest], Iterable[_Element]]
