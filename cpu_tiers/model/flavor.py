"""The flavor and the image of a server, and the values of policies as Nova's keys have them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeGuard

from cpu_tiers.errors import FaultList
from cpu_tiers.model.names import MAX_AMOUNT

CpuPolicy = Literal["dedicated", "mixed", "shared"]
ThreadPolicy = Literal["prefer", "isolate", "require"]
EmulatorThreadsPolicy = Literal["share", "isolate"]

PageSize = Literal["small", "large", "any"] | int
"""A size in kB, the smallest size of the host, any larger size, or any size."""

_NOTHING: Mapping[str, str] = MappingProxyType({})

SIZES: Mapping[str, int] = MappingProxyType(
    {"vcpus": 1, "memory_mb": 1, "root_gb": 0, "ephemeral_gb": 0, "swap_mb": 0}
)
"""The sizes of a flavor, with the smallest value of each."""


# A NamedTuple may not define __new__, so the subclass checks the values. Not a dataclass: see
# docs/contributor/house.rst, "Values".
class _Flavor(NamedTuple):
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    ephemeral_gb: int
    swap_mb: int
    extra_specs: Mapping[str, str]


class Flavor(_Flavor):
    """A flavor, with Nova's names and units.

    :raises InvalidInput: a size is not a whole number, or is out of range.
    """

    __slots__ = ()

    def __new__(
        cls,
        *,
        name: str,
        vcpus: int,
        memory_mb: int,
        root_gb: int = 0,
        ephemeral_gb: int = 0,
        swap_mb: int = 0,
        extra_specs: Mapping[str, str] = _NOTHING,
    ) -> Flavor:
        """Check every size, and raise an error with the faults of all sizes."""
        faults = FaultList()
        sizes = (vcpus, memory_mb, root_gb, ephemeral_gb, swap_mb)
        for (size, least), value in zip(SIZES.items(), sizes, strict=True):
            if not is_size(value, size):
                faults.add(
                    f"flavor {name}, {size}",
                    f"got {value!r}",
                    f"give a whole number from {least} to {MAX_AMOUNT}",
                )
        faults.raise_if_any()
        return super().__new__(cls, name, *sizes, extra_specs)

    def spec(self, key: str) -> str:
        """Return the name of an extra spec of this flavor in an error message."""
        return f"flavor {self.name}, extra spec {key}"


def is_size(value: object, field: str) -> TypeGuard[int]:
    """Return whether a value is within the range of a size of a flavor.

    :param field: the name of the size, such as ``memory_mb``.
    """
    # isinstance(True, int) is true, but a JSON file with "vcpus": true is a mistake.
    return type(value) is int and SIZES[field] <= value <= MAX_AMOUNT


class Image(NamedTuple):
    """The properties of an image.

    ``properties`` has the names of the image service, such as ``hw_cpu_policy`` and
    ``trait:HW_CPU_X86_AVX2``.

    :param disk_format: such as ``qcow2``; empty if it does not matter, as for a volume.
    """

    name: str
    properties: Mapping[str, str] = _NOTHING
    disk_format: str = ""

    def spec(self, key: str) -> str:
        """Return the name of a property of this image in an error message."""
        return f"image {self.name}, property {key}"


def properties(image: Image | None) -> Mapping[str, str]:
    """Return the properties of an image; none for a server without an image."""
    return _NOTHING if image is None else image.properties
