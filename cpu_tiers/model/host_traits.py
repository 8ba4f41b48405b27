"""The traits by which a host reports the functions of cpu-tiers that the host has (decision D76).

The traits are on the root provider. nova-compute reports the traits, and nova-scheduler requires
the traits for servers that need the functions.
"""

from cpu_tiers.model import names


def multiplier_trait() -> str:
    """Return the trait of a host that gives guests the weight of their multiplier."""
    return names.trait("COMPUTE_CPU_SHARES_MULTIPLIER")


def amounts_trait() -> str:
    """Return the trait of a host that accepts amounts of both VCPU and PCPU on one flavor."""
    return names.trait("COMPUTE_CPU_AMOUNTS")


def emulator_threads_trait() -> str:
    """Return the trait of a host that knows ``hw:cpu_emulator_threads``."""
    return names.trait("COMPUTE_CPU_EMULATOR_THREADS")
