"""Names that Placement knows, or has to be taught (decision D1).

A name that the installed os-resource-classes or os-traits has is used as it
stands; one that it lacks becomes ``CUSTOM_…`` and is created in Placement
before first use. Every other module names resource classes and traits
through this one.

os-traits is read at first use only: importing it costs more than the rest of
the translators together.
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

MAX_AMOUNT = 2**31 - 1
"""The largest amount that Placement accepts anywhere."""

_CUSTOM = r"CUSTOM_[A-Z0-9_]{1,248}"


def resource_class(name: str) -> str:
    """Return ``name`` where os-resource-classes has it, else ``CUSTOM_name``."""
    return name if name in orc.STANDARDS else f"CUSTOM_{name}"


VCPU_SHARES: str = resource_class("VCPU_SHARES")

_OURS = {"VCPU_SHARES": VCPU_SHARES}


def as_known(name: str) -> str:
    """Return what Placement calls a class that the specs name, and others as they are."""
    return _OURS.get(name, name)


@functools.cache
def standard_traits() -> frozenset[str]:
    """Return every trait of the installed os-traits."""
    import os_traits  # read at first use, see the module docstring

    return frozenset(os_traits.get_traits())


def trait(name: str) -> str:
    """Return ``name`` where os-traits has it, else ``CUSTOM_name``."""
    return name if name in standard_traits() else f"CUSTOM_{name}"


def custom_trait(text: str) -> str:
    """Return the custom trait that os-traits makes of any text, such as a network's name."""
    import os_traits  # see standard_traits()

    return str(os_traits.normalize_name(text))


_OF_HOSTS = ("COMPUTE_", "HW_CPU_", "OWNER_")
_OF_DEVICES = ("HW_CPU_X86_AMD_SEV", "HW_CPU_X86_INTEL_TDX")


def host_traits(traits: Iterable[str]) -> frozenset[str]:
    """Return those of the traits that only the root of a host can have.

    What encrypts memory is a provider of its own from Nova 32 on.
    """
    return frozenset(
        one for one in traits if one.startswith(_OF_HOSTS) and not one.startswith(_OF_DEVICES)
    )


def is_custom(name: str) -> bool:
    """Tell whether ``name`` is a well-formed custom class or trait."""
    return re.fullmatch(_CUSTOM, name) is not None


def is_resource_class(name: str) -> bool:
    """Tell whether Placement can know ``name`` as a resource class."""
    return name in orc.STANDARDS or is_custom(name)


def is_trait(name: str) -> bool:
    """Tell whether Placement can know ``name`` as a trait."""
    return is_custom(name) or name in standard_traits()
