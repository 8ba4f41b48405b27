"""The dedicated and the real-time vCPUs of a server, by masks or by amounts.

As in Nova, the real-time mask of the image overrides the real-time mask of the flavor. Spec:
use-pcpu-vcpu-in-one-instance, "Set dedicated CPU bit-mask", "Affect over real-time vCPUs" and
"Create mixed instance via resources:PCPU and resources:VCPU". Pure.

A mask must name some of the vCPUs of the server (``every``), and no other vCPU; a function that
reads another mask raises InvalidInput.
"""

from __future__ import annotations  # servers without NUMA nodes do not import extra_specs.numa

from collections.abc import Sequence
from typing import TYPE_CHECKING

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image, properties

if TYPE_CHECKING:
    from cpu_tiers.extra_specs.numa import GuestNode

DEDICATED_MASK = "hw:cpu_dedicated_mask"
REALTIME = "hw:cpu_realtime"
REALTIME_MASK = "hw:cpu_realtime_mask"
IMAGE_REALTIME_MASK = "hw_cpu_realtime_mask"

# The words of oslo_utils.strutils.bool_from_string, which Nova uses without strict=True: Nova
# takes any other word for no.
YES = ("1", "t", "true", "on", "y", "yes")
_NO = ("0", "f", "false", "off", "n", "no")


def is_realtime(flavor: Flavor) -> bool:
    """Return whether a flavor has real-time vCPUs.

    :raises InvalidInput: the value of the extra spec is neither yes nor no.
    """
    text = flavor.extra_specs.get(REALTIME)
    if text is None:
        return False
    word = text.strip().lower()
    if word not in YES + _NO:
        raise InvalidInput.of(flavor.spec(REALTIME), f"got {text!r}", "give yes or no")
    return word in YES


def mixed_mask(flavor: Flavor, image: Image | None, every: CpuSet, *, realtime: bool) -> CpuSet:
    """Return the dedicated vCPUs of a mixed server.

    A mixed server has either a dedicated mask or a real-time mask. A real-time
    mask makes its vCPUs dedicated.

    :param realtime: whether the server has real-time vCPUs.
    :raises InvalidInput: all vCPUs are dedicated.
    :raises ConflictingExtraSpecs: both masks are set, or neither mask is set.
    """
    has_mask = DEDICATED_MASK in flavor.extra_specs
    by_realtime = realtime or has_realtime_mask(flavor, image)
    where = f"flavor {flavor.name}, CPU policy mixed"
    if has_mask == by_realtime:
        raise ConflictingExtraSpecs.of(
            where,
            f"{'both' if by_realtime else 'neither'} {DEDICATED_MASK} and a real-time mask",
            f"set either {DEDICATED_MASK} or {REALTIME_MASK}",
        )
    dedicated = dedicated_mask(flavor, every) if has_mask else realtime_mask(flavor, image, every)
    if dedicated == every:
        given = f"all vCPUs {every} are dedicated"
        raise InvalidInput.of(where, given, "leave at least one vCPU shared")
    return dedicated


def dedicated_mask(flavor: Flavor, every: CpuSet) -> CpuSet:
    """Return the vCPUs of the dedicated mask of a flavor that has such a mask."""
    return _mask(flavor, DEDICATED_MASK, flavor.extra_specs[DEDICATED_MASK], every)


def realtime_mask(flavor: Flavor, image: Image | None, every: CpuSet) -> CpuSet:
    """Return the vCPUs of the real-time mask, or all vCPUs if there is no such mask."""
    if image is not None and IMAGE_REALTIME_MASK in image.properties:
        return _mask(image, IMAGE_REALTIME_MASK, image.properties[IMAGE_REALTIME_MASK], every)
    text = flavor.extra_specs.get(REALTIME_MASK)
    return every if text is None else _mask(flavor, REALTIME_MASK, text, every)


def has_realtime_mask(flavor: Flavor, image: Image | None) -> bool:
    """Return whether flavor or image have a real-time mask, valid or not."""
    return REALTIME_MASK in flavor.extra_specs or IMAGE_REALTIME_MASK in properties(image)


def _mask(source: Flavor | Image, key: str, text: str, every: CpuSet) -> CpuSet:
    where = source.spec(key)
    mask = CpuSet.parse(text, where=where, every=every)
    if not mask <= every:
        raise InvalidInput.of(
            where, f"{text!r}, of a server with the vCPUs {every}", "name only vCPUs of the server"
        )
    return mask


def shared_round_robin(nodes: Sequence[GuestNode], shared: int) -> CpuSet:
    """Return the shared vCPUs. In each round, every node makes its lowest vCPU shared.

    A node whose vCPUs are all shared is skipped, so that the rounds go on for nodes
    of unequal size.

    :param shared: the number of shared vCPUs, less than the vCPUs of all nodes.
    """
    dedicated = [sorted(node.cpus, reverse=True) for node in nodes]
    chosen: list[int] = []
    while len(chosen) < shared:
        dedicated = [cpus for cpus in dedicated if cpus]
        chosen += [cpus.pop() for cpus in dedicated[: shared - len(chosen)]]
    return CpuSet(chosen)
