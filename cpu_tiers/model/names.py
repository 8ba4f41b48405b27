"""The names of resource classes and traits in Placement (decision D1).

A name of the specs that the installed os-resource-classes or os-traits contains is
used unchanged. Otherwise the name becomes ``CUSTOM_…``, and cpu-tiers creates it in
Placement before its first use. Every other module takes the names of resource classes
and traits from this module.

os-traits is imported at its first use: importing os-traits takes longer than
importing all translators.
"""

import functools
import re
from collections.abc import Iterable

import os_resource_classes as orc

VCPU: str = orc.VCPU
PCPU: str = orc.PCPU
MEMORY_MB: str = orc.MEMORY_MB
DISK_GB: str = orc.DISK_GB
NET_BW_EGR: str = orc.NET_BW_EGR_KILOBIT_PER_SEC
NET_BW_IGR: str = orc.NET_BW_IGR_KILOBIT_PER_SEC
NET_PACKETS: str = orc.NET_PACKET_RATE_KILOPACKET_PER_SEC
NET_PACKETS_EGR: str = orc.NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC
NET_PACKETS_IGR: str = orc.NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC

SHARING = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of a provider that shares its inventory with the hosts of its aggregates."""

STANDARD_CLASSES: frozenset[str] = frozenset(orc.STANDARDS)
"""Every resource class of the installed os-resource-classes."""

MAX_AMOUNT = 2**31 - 1
"""The largest amount that Placement accepts, in any field."""

# Placement takes names of up to 255 characters: 7 for CUSTOM_ and 248 more.
_CUSTOM = r"CUSTOM_[A-Z0-9_]{1,248}"


def resource_class(name: str) -> str:
    """Return ``name`` if os-resource-classes contains it, else ``CUSTOM_name``."""
    return name if name in orc.STANDARDS else f"CUSTOM_{name}"


VCPU_SHARES: str = resource_class("VCPU_SHARES")

NUMA_SERVER: str = resource_class("NUMA_SERVER")
"""The anchor: each server with NUMA nodes claims 1 of the root provider of its host.
Nova's moves look for the allocations of a server on the root provider."""

# A flavor may have the name of the specs, which is not the name in Placement.
_OURS = {"VCPU_SHARES": VCPU_SHARES}


def as_known(name: str) -> str:
    """Return the name in Placement of a resource class that the specs name.

    Other names are returned unchanged.
    """
    return _OURS.get(name, name)


@functools.cache
def standard_traits() -> frozenset[str]:
    """Return every trait of the installed os-traits."""
    import os_traits  # read at first use, see the module docstring

    return frozenset(os_traits.get_traits())


def trait(name: str) -> str:
    """Return ``name`` if os-traits contains it, else ``CUSTOM_name``."""
    return name if name in standard_traits() else f"CUSTOM_{name}"


def custom_trait(text: str) -> str:
    """Return the custom trait that os-traits makes of a text, such as a network's name."""
    import os_traits  # see standard_traits()

    return str(os_traits.normalize_name(text))


_OF_HOSTS = ("COMPUTE_", "HW_CPU_", "OWNER_")
_OF_DEVICES = ("HW_CPU_X86_AMD_SEV", "HW_CPU_X86_INTEL_TDX")


def host_traits(traits: Iterable[str]) -> frozenset[str]:
    """Return the traits that only the root provider of a host can have.

    From Nova 32 on, memory encryption is a provider of its own, with its own traits.
    """
    return frozenset(
        name for name in traits if name.startswith(_OF_HOSTS) and not name.startswith(_OF_DEVICES)
    )


@functools.lru_cache(maxsize=1024)
def is_custom(name: str) -> bool:
    """Return whether ``name`` is a well-formed custom resource class or trait."""
    return re.fullmatch(_CUSTOM, name) is not None


def is_resource_class(name: str) -> bool:
    """Return whether Placement can have a resource class of this name."""
    return name in orc.STANDARDS or is_custom(name)


def is_trait(name: str) -> bool:
    """Return whether Placement can have a trait of this name."""
    return is_custom(name) or name in standard_traits()
