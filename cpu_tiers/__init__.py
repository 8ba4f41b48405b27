"""CPU performance tiers, mixed CPUs, NUMA and bandwidth for an unmodified Nova.

The house is described in ``docs/house.rst``. Nothing is imported and nothing
is installed when this package is imported. What nova.conf names,
``cpu_tiers.ResourceProviderWeigher``, is imported when nova-scheduler asks for it.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the weigher that ``[filter_scheduler] weight_classes`` names (PEP 562).

    :raises AttributeError: the package has nothing of this name.
    """
    if name != "ResourceProviderWeigher":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher

    return ResourceProviderWeigher
