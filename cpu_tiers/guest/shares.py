"""The weight of a domain: its CPU shares among all domains of the host.

Spec: cpu-performance-service-levels, "CPU Share Management"; decision D2: the
multiplier applies to all vCPUs, including dedicated vCPUs.
"""

from cpu_tiers.extra_specs.shares import parse_shares
from cpu_tiers.model.flavor import Flavor


def domain_shares(flavor: Flavor) -> int | None:
    """Return the CPU shares of a domain, 2 to 10000, or ``None`` if the flavor sets none.

    :raises InvalidInput: see :func:`~cpu_tiers.extra_specs.shares.parse_shares`.
    """
    shares = parse_shares(flavor)
    return None if shares is None else shares.weight(flavor.vcpus)
