"""The memory pages that a flavor or an image requests for a guest.

Nova reads ``hw:mem_page_size`` of the flavor. If the flavor says ``any`` or
``large``, the image may choose with ``hw_mem_page_size``. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from decimal import Decimal

from cpu_tiers.errors import ConflictingExtraSpecs, Fault, FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image, PageSize, properties
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.numa import page_size_of, page_trait

KEY = "hw:mem_page_size"
IMAGE_KEY = "hw_mem_page_size"

_WORDS: dict[str, PageSize] = {"small": "small", "large": "large", "any": "any"}
_NUMBER = r"[0-9]{1,10}"
# The units of oslo_utils.strutils.string_to_bytes, with which Nova reads the key.
_WITH_UNIT = r"([0-9]{0,10}\.?[0-9]{1,10})(?:([KMGT])i?)?(B|b|bit)"
_BYTES = {None: 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_ALLOWED = "give small, large, any, a size in kB, or a size with its unit, such as 2MB"


def asks_for_pages(flavor: Flavor, image: Image | None) -> bool:
    """Return whether flavor or image set a page size, valid or not."""
    return KEY in flavor.extra_specs or IMAGE_KEY in properties(image)


def page_size(flavor: Flavor, image: Image | None) -> PageSize | None:
    """Return the page size, or ``None`` if neither flavor nor image request a size.

    :raises InvalidInput: a page cannot have this size.
    :raises ConflictingExtraSpecs: the image requests a size, and the flavor does not
        leave the choice to the image.
    """
    faults = FaultList()
    of_flavor = flavor.extra_specs.get(KEY)
    size = None if of_flavor is None else faults.read(_parse, of_flavor, flavor.spec(KEY))
    if image is not None and IMAGE_KEY in image.properties:
        of_image = image.properties[IMAGE_KEY]
        if not faults.faults:
            _check_choice(flavor, of_flavor, size, image, of_image)
        size = faults.read(_parse, of_image, image.spec(IMAGE_KEY))
    faults.raise_if_any()
    return size


def _check_choice(
    flavor: Flavor, of_flavor: str | None, size: PageSize | None, image: Image, of_image: str
) -> None:
    """Refuse the size of an image if the flavor does not leave the choice to the image.

    :param size: the size that ``of_flavor`` means.
    :raises ConflictingExtraSpecs: the flavor has another value, or none.
    """
    if size not in ("any", "large"):
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {KEY} {of_flavor!r}, the image {IMAGE_KEY} {of_image!r}"
            if of_flavor is not None
            else f"the image has {IMAGE_KEY} {of_image!r}, the flavor no {KEY}",
            f"an image may choose a size if the flavor has {KEY} any or large",
        )


def absent_pages(flavor: Flavor, image: Image | None, traits: Collection[str]) -> Fault | None:
    """Return a fault if no host reports pages of the size that a guest requests.

    The result is ``None`` if a host reports such pages. The result is also ``None`` if no
    host reports any pages, because the pages of the hosts are unknown in this case.

    :param traits: the traits of the providers in Placement. The traits of page
        sizes count, see "Memory pagesize RP" of the spec numa-topology-with-rps.
    :raises InvalidInput: as :func:`page_size`.
    """
    requested = page_size(flavor, image)
    trait = None if requested is None else page_trait(requested)
    sizes = sorted(size for name in traits if (size := page_size_of([name])) is not None)
    if trait is None or trait in traits or not sizes:
        return None
    by_image = image is not None and IMAGE_KEY in image.properties
    pages = f"pages of {requested} kB" if isinstance(requested, int) else f"{requested} pages"
    return Fault(
        where=image.spec(IMAGE_KEY) if image and by_image else flavor.spec(KEY),
        given=f"asks for {pages}, and no host that reports its NUMA nodes has such pages",
        allowed=f"these hosts have pages of {', '.join(map(str, sizes))} kB",
    )


def _parse(text: str, where: str) -> PageSize:
    if text in _WORDS:
        return _WORDS[text]
    kilobytes = _kilobytes(text)
    if kilobytes is None or not 1 <= kilobytes <= MAX_AMOUNT or kilobytes % 1:
        raise InvalidInput.of(where, f"got {text!r}", _ALLOWED)
    return int(kilobytes)


def _kilobytes(text: str) -> Decimal | None:
    if re.fullmatch(_NUMBER, text):
        return Decimal(text)
    match = re.fullmatch(_WITH_UNIT, text)
    if match is None:
        return None
    number, prefix, unit = match.groups()
    size = Decimal(number) * _BYTES[prefix] / 1024
    return size if unit == "B" else size / 8  # "b" and "bit", as in oslo_utils.strutils
