"""What a host has room for, and what its guests have claimed of it.

The arithmetic is Placement's: a server fits where its claim is no more than
one server may have and no more than the capacity leaves. Pure.
"""

from collections.abc import Mapping
from fractions import Fraction

from cpu_tiers.guest.tier import flavor_shares, multiplier_of
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import Domain
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES


def claim_of(domain: Domain, shared_cpus: CpuSet) -> Mapping[str, int]:
    """Return the VCPU and VCPU_SHARES that a guest claims, decision D2.

    :param shared_cpus: a vCPU that may run on one of these is shared, any other
        is dedicated and claims neither.
    """
    sets = domain.vcpu_sets
    shared = sum(cpus is None or not shared_cpus.isdisjoint(cpus) for cpus in sets)
    return {VCPU: shared, VCPU_SHARES: _claimed_shares(domain, shared)}


def room_for(
    claim: Mapping[str, int], inventories: Mapping[str, Inventory], used: Mapping[str, int]
) -> int:
    """Return how many servers with this claim fit beside what is used."""
    asked = {name: amount for name, amount in claim.items() if amount}
    if any(name not in inventories or n > inventories[name].max_unit for name, n in asked.items()):
        return 0
    left = {name: inventories[name].capacity - used.get(name, 0) for name in asked}
    return max(0, min(left[name] // amount for name, amount in asked.items()))


def _claimed_shares(domain: Domain, shared_vcpus: int) -> int:
    if domain.extra_specs is not None:
        shares = flavor_shares(domain)
        return 0 if shares is None else shares.claim(shared_vcpus)
    multiplier = multiplier_of(domain)
    return 0 if multiplier is None else int(multiplier * shared_vcpus + Fraction(1, 2))
