"""XML documents that may come from anywhere.

A document type is refused, and no entity, external or not, is ever resolved.
"""

from lxml import etree
from lxml.etree import _Element

from cpu_tiers.errors import FaultList, InvalidInput

_MAX_DIGITS = 15


def read_root(text: bytes, *, tag: str, where: str, allowed: str) -> _Element:
    """Return the root element of a document.

    :param text: the XML document, in the encoding that it declares.
    :param where: what to call the document in an error.
    :param allowed: what to give instead, in an error.
    :raises InvalidInput: no XML, hostile XML, or another root.
    """
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
    )
    try:
        root = etree.fromstring(text, parser)
    except etree.XMLSyntaxError as error:
        raise InvalidInput.of(where, f"not XML: {error.msg}", allowed) from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise InvalidInput.of(
            where, "a document type (<!DOCTYPE>)", f"libvirt writes none: {allowed}"
        )
    if root.tag != tag:
        raise InvalidInput.of(where, f"a document of {root.tag!r}", allowed)
    return root


def whole_number(text: str | None, place: str, faults: FaultList) -> int:
    """Return a whole number of a document, or 0 and a fault."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text)
    faults.add(place, f"got {text[:40]!r}", "libvirt gives a whole number")
    return 0
