"""Merge elements of several plugins into a domain; each part belongs to a single plugin."""

from collections.abc import Iterator

from lxml.etree import _Element

from cpu_tiers.errors import ExtensionError

NOVA = "Nova"
"""Who wrote a part that no plugin wrote."""


def parts_of(element: _Element) -> Iterator[str]:
    """Yield the names of the child elements and the attributes of a top-level element."""
    tag = str(element.tag)
    children = [f"{tag}/{child.tag!s}" for child in element]
    yield from children
    yield from (f"{tag}/@{attribute}" for attribute in element.attrib)
    # Text, and an empty element, cannot be merged with those of another plugin.
    if not (children or element.attrib) or (element.text or "").strip():
        yield tag


def merge(name: str, domain: _Element, element: _Element, written_by: dict[str, str]) -> None:
    """Add a top-level element to a domain, and remember who wrote each part.

    :param name: of the plugin that wrote the element.
    :param written_by: the writers of parts by the names of the parts; edited in place.
    :raises ExtensionError: another plugin, or Nova, wrote the same part.
    """
    for part in parts_of(element):
        other = written_by.setdefault(part, name)
        if other == NOVA:
            raise ExtensionError(
                f"Nova and the plugin {name!r} of cpu_tiers.domain_xml both write {part};"
                " uninstall the distribution of the plugin"
            )
        if other != name:
            raise ExtensionError(
                f"the plugins {other!r} and {name!r} of cpu_tiers.domain_xml both write {part};"
                " uninstall one of them"
            )
    known = domain.find(str(element.tag))
    if known is None:
        domain.append(element)
    else:
        known.attrib.update(element.attrib)
        known.extend(element)
