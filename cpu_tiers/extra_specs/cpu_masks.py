"""Which vCPUs a mask makes dedicated, or real-time.

Spec: use-pcpu-vcpu-in-one-instance, "Set dedicated CPU bit-mask" and "Affect
over real-time vCPUs". The image's real-time mask goes ahead of the flavor's,
as in Nova. Pure.
"""

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.choices import properties
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image

DEDICATED_MASK = "hw:cpu_dedicated_mask"
REALTIME = "hw:cpu_realtime"
REALTIME_MASK = "hw:cpu_realtime_mask"
IMAGE_REALTIME_MASK = "hw_cpu_realtime_mask"

_YES = ("1", "t", "true", "on", "y", "yes")
_NO = ("0", "f", "false", "off", "n", "no")


def is_realtime(flavor: Flavor) -> bool:
    """Tell whether vCPUs of a server are real-time.

    :raises InvalidInput: the extra spec says neither yes nor no.
    """
    text = flavor.extra_specs.get(REALTIME)
    if text is None:
        return False
    word = text.strip().lower()
    if word not in _YES + _NO:
        raise InvalidInput.of(flavor.spec(REALTIME), f"got {text!r}", "give yes or no")
    return word in _YES


def has_realtime_mask(flavor: Flavor, image: Image | None) -> bool:
    """Tell whether flavor or image say which vCPUs would be real-time."""
    return REALTIME_MASK in flavor.extra_specs or IMAGE_REALTIME_MASK in properties(image)


def dedicated_mask(flavor: Flavor, every: CpuSet) -> CpuSet:
    """Return the vCPUs of the flavor's dedicated mask, which must be set.

    :param every: all vCPUs of the server.
    :raises InvalidInput: the mask is malformed, empty, or not of these vCPUs.
    """
    return _mask(flavor, DEDICATED_MASK, flavor.extra_specs[DEDICATED_MASK], every)


def realtime_mask(flavor: Flavor, image: Image | None, every: CpuSet) -> CpuSet:
    """Return the vCPUs of the real-time mask, all of them where there is none.

    :param every: all vCPUs of the server.
    :raises InvalidInput: the mask is malformed, empty, or not of these vCPUs.
    """
    if image is not None and IMAGE_REALTIME_MASK in image.properties:
        return _mask(image, IMAGE_REALTIME_MASK, image.properties[IMAGE_REALTIME_MASK], every)
    text = flavor.extra_specs.get(REALTIME_MASK)
    return every if text is None else _mask(flavor, REALTIME_MASK, text, every)


def _mask(source: Flavor | Image, key: str, text: str, every: CpuSet) -> CpuSet:
    where = source.spec(key)
    mask = CpuSet.parse(text, where=where, every=every)
    if not mask <= every:
        raise InvalidInput.of(
            where, f"{text!r}, of a server with the vCPUs {every}", "name vCPUs of its own alone"
        )
    return mask
