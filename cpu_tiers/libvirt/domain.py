"""Write the XML of a whole domain, valid against the schema of libvirt, with all plugins."""

from collections.abc import Iterable, Mapping

from lxml import etree
from lxml.builder import E
from lxml.etree import _Element

from cpu_tiers.errors import ExtensionError
from cpu_tiers.libvirt import cputune, memory, numa
from cpu_tiers.libvirt.contract import DomainElements, Guest

BUILT_IN: Mapping[str, DomainElements] = {
    "cputune": cputune.elements,
    "memory": memory.elements,
    "numa": numa.elements,
}
"""The plugins of cpu-tiers, by the names of their entry points in pyproject.toml."""


def domain_xml(guest: Guest, plugins: Mapping[str, DomainElements] = BUILT_IN) -> str:
    """Return the XML of a domain with the CPUs and the memory of the flavor, and its pinning.

    :param plugins: by name. ``cpu_tiers.extensions.load("cpu_tiers.domain_xml")`` returns the
        plugins of all installed distributions.
    :raises InvalidInput: an extra spec is invalid.
    :raises ExtensionError: two plugins write the same element or attribute.
    """
    domain = E.domain(type="kvm")
    written_by: dict[str, str] = {}
    for name, plugin in {"cpu_tiers": _basics, **plugins}.items():
        for element in plugin(guest):
            _merge(name, domain, element, written_by)
    return etree.tostring(domain, pretty_print=True, encoding="unicode")


def _basics(guest: Guest) -> Iterable[_Element]:
    yield E.name(guest.name)
    yield E.memory(str(guest.flavor.memory_mb), unit="MiB")
    yield _vcpu(guest)
    yield E.iothreads("1")  # as in Nova from release 33 on
    yield E.os(E.type("hvm", arch=guest.arch))


def _vcpu(guest: Guest) -> _Element:
    """Return ``<vcpu>``, with ``cpu_shared_set`` as its CPUs if the guest is not pinned."""
    shared = guest.host.cpu_shared_set
    floats = {"cpuset": str(shared)} if shared and not guest.cells else {}
    return E.vcpu(str(guest.flavor.vcpus), placement="static", **floats)


def _merge(name: str, domain: _Element, element: _Element, written_by: dict[str, str]) -> None:
    """Add an element of a plugin to the domain, and remember which plugin wrote each part."""
    tag = str(element.tag)
    parts = [f"{tag}/{child.tag!s}" for child in element]
    parts += [f"{tag}/@{attribute}" for attribute in element.attrib]
    # Text, and an empty element, cannot be merged with those of another plugin.
    if not parts or (element.text or "").strip():
        parts.append(tag)
    for part in parts:
        other = written_by.setdefault(part, name)
        if other != name:
            raise ExtensionError(
                f"the plugins {other!r} and {name!r} of cpu_tiers.domain_xml both write {part};"
                " uninstall one of them"
            )
    known = domain.find(tag)
    if known is None:
        domain.append(element)
    else:
        known.attrib.update(element.attrib)
        known.extend(element)
