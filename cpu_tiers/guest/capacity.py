"""The amounts requested by the guests of a host, and the number of additional servers that fit.

The arithmetic follows Placement: an amount fits if one claim may have it, and if it is at most
the capacity of the inventory minus the used amount. Pure.
"""

from collections.abc import Mapping
from fractions import Fraction

from cpu_tiers.guest.tier import flavor_shares, multiplier_of
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.domain import Domain
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES


def requested_amounts(domain: Domain, shared_cpus: CpuSet) -> Mapping[str, int]:
    """Return the VCPU and VCPU_SHARES that a guest requests of Placement, decision D2.

    :param shared_cpus: the CPUs of ``cpu_shared_set``. A vCPU that may run on one of these
        CPUs is shared. Any other vCPU is dedicated, and requests no VCPU and no VCPU_SHARES.
    """
    sets = domain.vcpu_sets
    shared = sum(cpus is None or not shared_cpus.isdisjoint(cpus) for cpus in sets)
    return {VCPU: shared, VCPU_SHARES: _requested_shares(domain, shared)}


def fitting_servers(
    amounts: Mapping[str, int], inventories: Mapping[str, Inventory], used: Mapping[str, int]
) -> int:
    """Return how many more servers with these requested amounts fit.

    :param amounts: at least one of the amounts must not be 0.
    :param used: the amounts that are allocated already.
    """
    # A guest without shared vCPUs or shares does not request the class at all.
    amounts = {name: amount for name, amount in amounts.items() if amount}
    if any(name not in inventories for name in amounts):
        return 0
    if any(inventories[name].units.refusing(amount) for name, amount in amounts.items()):
        return 0
    unused = {name: inventories[name].capacity - used.get(name, 0) for name in amounts}
    return max(0, min(unused[name] // amount for name, amount in amounts.items()))


def _requested_shares(domain: Domain, shared_vcpus: int) -> int:
    if domain.extra_specs is not None:
        shares = flavor_shares(domain)
        return 0 if shares is None else shares.claim(shared_vcpus)
    # Nova older than release 32 does not write the extra specs into the domain.
    multiplier = multiplier_of(domain)
    # Rounded half up, as Shares.claim does.
    return 0 if multiplier is None else int(multiplier * shared_vcpus + Fraction(1, 2))
