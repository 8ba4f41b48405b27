"""A whole domain, valid against libvirt's schema, around what plugins add."""

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
"""What cpu-tiers itself adds, by the names of the entry points."""


def domain_xml(guest: Guest, plugins: Mapping[str, DomainElements] = BUILT_IN) -> str:
    """Return the XML of a domain with the flavor's CPUs and memory, kept where it is pinned.

    :param plugins: by name; those of all installed distributions are
        ``cpu_tiers.extensions.load("cpu_tiers.domain_xml")``.
    :raises InvalidInput: an extra spec is invalid.
    :raises ExtensionError: two plugins write the same thing.
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
    yield E.os(E.type("hvm", arch=guest.arch))


def _vcpu(guest: Guest) -> _Element:
    """Return ``<vcpu>``, floating over the shared CPUs where vCPUs are not pinned one by one."""
    shared = guest.host.cpu_shared_set
    floats = {"cpuset": str(shared)} if shared and not guest.cells else {}
    return E.vcpu(str(guest.flavor.vcpus), placement="static", **floats)


def _merge(name: str, domain: _Element, element: _Element, written_by: dict[str, str]) -> None:
    tag = str(element.tag)
    parts = [f"{tag}/{child.tag!s}" for child in element]
    parts += [f"{tag}/@{attribute}" for attribute in element.attrib]
    if not parts or (element.text or "").strip():
        parts.append(tag)
    for part in parts:
        other = written_by.setdefault(part, name)
        if other != name:
            raise ExtensionError(
                f"the plugins {other!r} and {name!r} both write {part}; uninstall one"
            )
    known = domain.find(tag)
    if known is None:
        domain.append(element)
    else:
        known.attrib.update(element.attrib)
        known.extend(element)
