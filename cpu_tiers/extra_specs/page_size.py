"""The memory pages that a guest asks for.

Nova: ``hw:mem_page_size``, and ``hw_mem_page_size`` where the flavor leaves
the choice (``any`` or ``large``). Pure.
"""

from __future__ import annotations

import re
from decimal import Decimal

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import MAX_AMOUNT
from cpu_tiers.model.policies import PageSize

KEY = "hw:mem_page_size"
IMAGE_KEY = "hw_mem_page_size"

_WORDS: dict[str, PageSize] = {"small": "small", "large": "large", "any": "any"}
_NUMBER = r"[0-9]{1,10}"
_WITH_UNIT = r"([0-9]{0,10}\.?[0-9]{1,10})(?:([KMGT])i?)?(B|b|bit)"
_BYTES = {None: 1, "K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
_ALLOWED = "give small, large, any, a size in kB, or one with its unit, such as 2MB"


def page_size(flavor: Flavor, image: Image | None) -> PageSize | None:
    """Return the page size, or ``None`` where none is asked for.

    :raises InvalidInput: no size that a page could have.
    :raises ConflictingExtraSpecs: the flavor leaves the image no choice.
    """
    wanted = flavor.extra_specs.get(KEY)
    size = None if wanted is None else _parse(wanted, flavor.spec(KEY))
    if image is None or IMAGE_KEY not in image.properties:
        return size
    asked = image.properties[IMAGE_KEY]
    if size not in ("any", "large"):
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {KEY} {wanted!r}, the image {IMAGE_KEY} {asked!r}"
            if wanted is not None
            else f"the image has {IMAGE_KEY} {asked!r}, the flavor no {KEY}",
            f"an image may choose where the flavor has {KEY} any or large",
        )
    return _parse(asked, image.spec(IMAGE_KEY))


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
    return size if unit == "B" else size / 8
