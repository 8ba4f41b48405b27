"""The traits by which a host reports the functions of cpu-tiers that the host has (decision D76).

The traits are on the root provider. nova-compute reports the traits, and nova-scheduler requires
the traits for servers that need the functions.
"""


def multiplier_trait() -> str:
    """Return the trait of a host that gives guests the weight of their multiplier."""
    return "CUSTOM_COMPUTE_CPU_SHARES_MULTIPLIER"


def amounts_trait() -> str:
    """Return the trait of a host that accepts amounts of both VCPU and PCPU on one flavor."""
    return "CUSTOM_COMPUTE_CPU_AMOUNTS"


def emulator_threads_trait() -> str:
    """Return the trait of a host that knows ``hw:cpu_emulator_threads``."""
    return "CUSTOM_COMPUTE_CPU_EMULATOR_THREADS"


def realtime_mask_trait() -> str:
    """Return the trait of a host where a real-time mask says which vCPUs are dedicated.

    An unmodified Nova accepts such a mask in a mixed server only beside ``hw:cpu_realtime``.
    """
    return "CUSTOM_COMPUTE_CPU_REALTIME_MASK"


def even_memory_trait() -> str:
    """Return the trait of a host that divides the memory of a guest among its NUMA nodes.

    An unmodified Nova refuses ``hw:numa_cpus.N`` without ``hw:numa_mem.N``.
    """
    return "CUSTOM_COMPUTE_NUMA_EVEN_MEMORY"


def policy_traits() -> tuple[str, ...]:
    """Return the traits of a host with ``[compute] extend_cpu_policies``."""
    return (
        amounts_trait(),
        emulator_threads_trait(),
        realtime_mask_trait(),
        even_memory_trait(),
    )
