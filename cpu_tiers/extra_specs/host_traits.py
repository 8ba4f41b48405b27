"""The traits of hosts that a flavor needs, because plain Nova lacks a function (decision D76).

A flavor with a fault needs no trait for the faulty extra spec: other rules decide about faults.
Pure.
"""

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.extra_specs import cpu_policies as policies
from cpu_tiers.extra_specs.cpu_masks import DEDICATED_MASK, has_realtime_mask
from cpu_tiers.extra_specs.groups import read_groups
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.numa import has_cpus_only
from cpu_tiers.extra_specs.shares import effective_shares
from cpu_tiers.model import names
from cpu_tiers.model.flavor import Flavor, Image, properties


def traits_for_weight(flavor: Flavor) -> frozenset[str]:
    """Return the trait of a host that gives the guest its weight.

    Nova itself gives the weight of ``quota:cpu_shares``, so only a multiplier needs the trait.
    """
    shares = effective_shares(flavor)
    return frozenset({names.MULTIPLIER_TRAIT} if shares and shares.per_vcpu else ())


def traits_for_cpus(flavor: Flavor, image: Image | None) -> frozenset[str]:
    """Return the traits of a host that gives the guest the CPUs and the NUMA nodes of the flavor.

    Where Nova's own key for the emulator threads policy is set, too, each host knows the policy.
    """
    needed = set()
    own_groups = read_groups(flavor, FaultList())
    if own_groups.amount(names.VCPU) and own_groups.amount(names.PCPU):
        needed.add(names.AMOUNTS_TRAIT)
    elif _is_mixed_by_realtime_mask(flavor, image):
        needed.add(names.REALTIME_MASK_TRAIT)
    if has_cpus_only(flavor.extra_specs, properties(image)):
        needed.add(names.EVEN_MEMORY_TRAIT)
    specs = flavor.extra_specs
    is_policy = specs.get(policies.EMULATOR_SPEC_KEY) in policies.EMULATOR_POLICIES
    if is_policy and policies.EMULATOR_RELEASED_KEY not in specs:
        needed.add(names.EMULATOR_THREADS_TRAIT)
    return frozenset(needed)


def _is_mixed_by_realtime_mask(flavor: Flavor, image: Image | None) -> bool:
    """Tell whether only a real-time mask says which vCPUs of a mixed server are dedicated.

    Beside ``hw:cpu_realtime``, an unmodified Nova accepts such a mask.
    """
    if DEDICATED_MASK in flavor.extra_specs or not has_realtime_mask(flavor, image):
        return False
    try:
        guest = guest_cpus(flavor, image)
    except InvalidInput:
        return False
    return guest.policy == "mixed" and not guest.realtime
