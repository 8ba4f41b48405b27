"""Read XML documents from untrusted sources.

A document with a document type is refused, and no entity, internal or external, is resolved. The
size of a document and the CPU sets in it are bounded, because lxml takes 23 bytes of memory for a
byte of a hostile document, and a CPU set of 7 characters takes 5 ms.
"""

from lxml import etree
from lxml.etree import _Element

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.cpu_set import MAX_CPU, CpuSet

MAX_BYTES = 4 * 1024**2
"""The largest document that is read: libvirt sends no longer text (``REMOTE_STRING_MAX``)."""

_MAX_CPUS = 8 * (MAX_CPU + 1)
"""The number of CPUs, and of characters, that the different CPU sets of a document may have."""

_MAX_DIGITS = 15
"""Enough for memory in KiB. Python takes quadratic time to convert a number of many digits."""


def read_root(text: bytes, *, tag: str, where: str, allowed: str) -> _Element:
    """Return the root element of a document.

    :param text: the XML document, in the encoding that its declaration names.
    :param tag: the name that the root element must have.
    :param where: the name of the document in an error.
    :param allowed: the document that is expected, in an error.
    :raises InvalidInput: the text is longer than ``MAX_BYTES``, is not XML, has a document type,
        or has another root element.
    """
    if len(text) > MAX_BYTES:
        limit = f"libvirt writes at most {MAX_BYTES} bytes: {allowed}"
        raise InvalidInput.of(where, f"a document of {len(text)} bytes", limit)
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


class CpuSetReader:
    """Reads the CPU sets of a document, each different text once, and adds faults to a list.

    A document of libvirt repeats a few texts: the CPUs of a core have equal siblings, and guests
    float over the same CPUs.
    """

    def __init__(self, faults: FaultList) -> None:
        self._faults = faults
        self._sets: dict[str, CpuSet | None] = {}
        self._room = _MAX_CPUS

    def read(self, text: str, where: str) -> CpuSet | None:
        """Return the CPU set, or ``None`` after a fault. A text has one fault in a document."""
        if text not in self._sets:
            self._sets[text] = None
            if self._room > 0:
                with self._faults:
                    self._sets[text] = CpuSet.parse(text, where=where)
                self._room -= len(text) + len(self._sets[text] or ())
                if self._room <= 0:
                    given = f"with this CPU set, the different CPU sets have over {_MAX_CPUS} CPUs"
                    self._faults.add(where, given, "libvirt repeats a few CPU sets")
        return self._sets[text]


def whole_number(text: str | None, place: str, faults: FaultList) -> int:
    """Return a whole number of a document; if the text is no number, add a fault and return 0."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS:
        return int(text)
    faults.add(place, f"got {text[:40]!r}", "libvirt gives a whole number")
    return 0
