"""The names of resource classes, traits and devices in Placement (decision D112).

The VCPU_SHARES of the specs are CUSTOM_VCPU_SHARES in Placement, whatever os-resource-classes
contains. The traits of the specs are ``CUSTOM_…`` in every request; a host also reports the
standard name of a trait once the installed os-traits contains it. Every other module takes the
names of resource classes and traits from this module. os-traits is imported at its first use: its
import takes longer than that of all translators.
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

COMPUTE_NODE = "COMPUTE_NODE"
"""The trait that nova-compute gives to the root provider of each host."""

SHARING = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of a provider that shares its inventory with the hosts of its aggregates."""

STANDARD_CLASSES: frozenset[str] = frozenset(orc.STANDARDS)
"""Every resource class of the installed os-resource-classes."""

MAX_AMOUNT = 2**31 - 1
"""The largest amount that Placement accepts, in any field."""

# Placement takes names of up to 255 characters: 7 for CUSTOM_ and 248 more.
_CUSTOM = r"CUSTOM_[A-Z0-9_]{1,248}"


VCPU_SHARES = "CUSTOM_VCPU_SHARES"

_SHARES_OF_THE_SPECS = "VCPU_SHARES"

NUMA_SERVER = "CUSTOM_NUMA_SERVER"
"""The anchor: each server with NUMA nodes claims 1 of the root provider of its host.
Nova's moves look for the allocations of a server on the root provider."""


def as_known(name: str) -> str:
    """Return the name in Placement of a class in an option: VCPU_SHARES is custom there.

    Other names are returned unchanged.
    """
    return VCPU_SHARES if name == _SHARES_OF_THE_SPECS else name


@functools.cache
def standard_traits() -> frozenset[str]:
    """Return every trait of the installed os-traits."""
    import os_traits  # read at first use, see the module docstring

    return frozenset(os_traits.get_traits())


def names_of_trait(custom: str) -> frozenset[str]:
    """Return the names by which a host reports a trait of the specs.

    :param custom: the name in requests. A host has this name whatever its os-traits contains, so
        that one request finds the hosts of a cloud whose hosts have different releases.
    """
    standard = custom.removeprefix("CUSTOM_")
    return frozenset({custom, standard} if standard in standard_traits() else {custom})


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


MULTIPLIER_TRAIT = "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"
"""The trait of a host that gives guests the weight of their multiplier.

By this trait and by :data:`POLICY_TRAITS`, the root provider of a host tells the functions of
cpu-tiers that nova-scheduler may require for a server (decision D76)."""

TIER_CHANGE_TRAIT = "CUSTOM_COMPUTE_CPU_TIER_CHANGE"
"""The trait of a host that changes the weight of a running guest when nova-api asks for it."""

AMOUNTS_TRAIT = "CUSTOM_COMPUTE_CPU_AMOUNTS"
"""The trait of a host that accepts amounts of both VCPU and PCPU on one flavor."""

EMULATOR_THREADS_TRAIT = "CUSTOM_COMPUTE_CPU_EMULATOR_THREADS"
"""The trait of a host that knows ``hw:cpu_emulator_threads``."""

REALTIME_MASK_TRAIT = "CUSTOM_COMPUTE_CPU_REALTIME_MASK"
"""The trait of a host where a real-time mask says which vCPUs are dedicated.
An unmodified Nova accepts such a mask in a mixed server only beside ``hw:cpu_realtime``."""

EVEN_MEMORY_TRAIT = "CUSTOM_COMPUTE_NUMA_EVEN_MEMORY"
"""The trait of a host that divides the memory of a guest among its NUMA nodes.
An unmodified Nova refuses ``hw:numa_cpus.N`` without ``hw:numa_mem.N``."""

POLICY_TRAITS = (AMOUNTS_TRAIT, EMULATOR_THREADS_TRAIT, REALTIME_MASK_TRAIT, EVEN_MEMORY_TRAIT)
"""The traits of a host with ``[compute] extend_cpu_policies``."""


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


def interface_of(provider: str) -> str | None:
    """Return the interface of a device by the name of its provider.

    Neutron names a device ``<host>:<agent>:<interface>``.

    :returns: ``None`` if the provider is no device.
    """
    parts = provider.split(":")
    return parts[2] or None if len(parts) == 3 else None
