"""The flavors of the servers in the tests of faults, with what each server must have.

All numbers are worked out by hand: 2 vCPUs of the flavor ``mixed`` are 1 shared vCPU, which claims
50 x 1 shares, and a weight of 50 x 2.
"""

from collections.abc import Mapping
from typing import NamedTuple

SHARES = "CUSTOM_VCPU_SHARES"


class Tier(NamedTuple):
    """A flavor, what its servers claim, and the weight and the CPUs of its guests."""

    vcpus: int
    extra_specs: Mapping[str, str]
    claims: Mapping[str, int]
    weight: int
    cpus: Mapping[str, str]


TIERS = {
    "gold": Tier(
        vcpus=1,
        extra_specs={"quota:cpu_shares_multiplier": "100"},
        claims={"VCPU": 1, "MEMORY_MB": 128, SHARES: 100},
        weight=100,
        cpus={"0": "0"},
    ),
    "mixed": Tier(
        vcpus=2,
        extra_specs={
            "quota:cpu_shares_multiplier": "50",
            "hw:cpu_policy": "mixed",
            "hw:cpu_dedicated_mask": "0",
        },
        claims={"VCPU": 1, "PCPU": 1, "MEMORY_MB": 128, SHARES: 50},
        weight=100,
        cpus={"0": "1", "1": "0"},
    ),
}
"""By the name of the flavor. A host shares its CPU 0, and gives away its CPU 1."""
