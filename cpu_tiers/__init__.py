"""CPU performance tiers, mixed CPUs, NUMA and bandwidth for an unmodified Nova.

``docs/contributor/house.rst`` describes the packages. Importing this package imports no
other module and wraps no function of Nova. nova.conf names the weigher
``cpu_tiers.ResourceProviderWeigher``: the weigher's module is imported when
nova-scheduler loads the weigher.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    """Return the weigher that ``[filter_scheduler] weight_classes`` names (PEP 562).

    :raises AttributeError: the name is another one.
    """
    if name != "ResourceProviderWeigher":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cpu_tiers.nova.scheduler.weigher import ResourceProviderWeigher

    return ResourceProviderWeigher
