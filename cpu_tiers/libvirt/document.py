"""Read XML documents from untrusted sources.

A document with a document type is refused, and no entity, internal or external, is resolved.
"""

from lxml import etree
from lxml.etree import _Element

from cpu_tiers.errors import FaultList, InvalidInput

_MAX_DIGITS = 15
"""Enough for memory in KiB. Python takes quadratic time to convert a number of many digits."""


def read_root(text: bytes, *, tag: str, where: str, allowed: str) -> _Element:
    """Return the root element of a document.

    :param text: the XML document, in the encoding that its declaration names.
    :param tag: the name that the root element must have.
    :param where: the name of the document in an error.
    :param allowed: the document that is expected, in an error.
    :raises InvalidInput: the text is not XML, has a document type, or has another root element.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
    )
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidInput.of(where, f"not XML: {error.msg}", allowed) from error
    # A document type can define entities that expand to gigabytes ("billion laughs").
    if root.getroottree().docinfo.internalDTD is not None:
        raise InvalidInput.of(
            where, "a document type (<!DOCTYPE>)", f"libvirt writes none: {allowed}"
        )
    if root.tag != tag:
        raise InvalidInput.of(where, f"a document with the root element {root.tag!r}", allowed)
    return root


def whole_number(text: str | None, place: str, faults: FaultList) -> int:
    """Return a whole number of a document; if the text is no number, add a fault and return 0."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text)
    faults.add(place, f"got {text[:40]!r}", "libvirt gives a whole number")
    return 0
