"""The traits of hosts that a flavor needs, because plain Nova lacks a function (decision D76).

A flavor with a fault needs no trait for the faulty extra spec: other rules decide about faults.
Pure.
"""

from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.emulator_threads import POLICIES, RELEASED_KEY, SPEC_KEY
from cpu_tiers.extra_specs.groups import read_groups
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.host_traits import amounts_trait, emulator_threads_trait, multiplier_trait
from cpu_tiers.model.names import PCPU, VCPU


def traits_for_weight(flavor: Flavor) -> frozenset[str]:
    """Return the trait of a host that gives the guest its weight.

    Nova itself gives the weight of ``quota:cpu_shares``, so only a multiplier needs the trait.
    """
    shares = effective_shares(flavor)
    return frozenset({multiplier_trait()} if shares and shares.per_vcpu else ())


def traits_for_cpus(flavor: Flavor) -> frozenset[str]:
    """Return the traits of a host that gives the guest the CPUs of the flavor.

    Where Nova's own key for the emulator threads policy is set, too, each host knows the policy.
    """
    needed = set()
    own = read_groups(flavor, FaultList())
    if own.amount(VCPU) and own.amount(PCPU):
        needed.add(amounts_trait())
    specs = flavor.extra_specs
    if specs.get(SPEC_KEY) in POLICIES and RELEASED_KEY not in specs:
        needed.add(emulator_threads_trait())
    return frozenset(needed)
