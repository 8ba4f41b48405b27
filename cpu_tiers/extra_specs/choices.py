"""Reads extra specs and image properties whose value is a word of a list. Pure."""

from collections.abc import Mapping
from typing import TypeVar

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.model.flavor import Flavor, Image

_Word = TypeVar("_Word", bound=str)
_NOTHING: Mapping[str, str] = {}


def properties(image: Image | None) -> Mapping[str, str]:
    """Return the properties of an image; none for a server without an image."""
    return _NOTHING if image is None else image.properties


def flavor_choice(flavor: Flavor, key: str, words: tuple[_Word, ...]) -> _Word | None:
    """Return the value of an extra spec, or ``None`` if the flavor does not have it.

    :raises InvalidInput: the value is not in ``words``.
    """
    text = flavor.extra_specs.get(key)
    return None if text is None else _choice(flavor, key, text, words)


def image_choice(image: Image | None, key: str, words: tuple[_Word, ...]) -> _Word | None:
    """Return the value of an image property, or ``None`` if the image does not have it.

    :raises InvalidInput: the value is not in ``words``.
    """
    if image is None or (text := image.properties.get(key)) is None:
        return None
    return _choice(image, key, text, words)


def choices(
    flavor: Flavor, key: str, image: Image | None, image_key: str, words: tuple[_Word, ...]
) -> tuple[_Word | None, _Word | None]:
    """Return the values of an extra spec and of the image property with the same meaning.

    :raises InvalidInput: a value is not in ``words``; with the faults of both values.
    """
    if key not in flavor.extra_specs and image_key not in properties(image):
        return None, None
    faults = FaultList()
    of_flavor = faults.read(flavor_choice, flavor, key, words)
    of_image = faults.read(image_choice, image, image_key, words)
    faults.raise_if_any()
    return of_flavor, of_image


def _choice(source: Flavor | Image, key: str, text: str, words: tuple[_Word, ...]) -> _Word:
    # Returns the word of the list, which has the Literal type that the caller declares.
    for word in words:
        if word == text:
            return word
    raise InvalidInput.of(source.spec(key), f"got {text!r}", f"give one of {', '.join(words)}")
