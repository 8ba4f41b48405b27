"""The weight that a guest must have on its host, and the part of its shared vCPUs. Pure."""

from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.cpu_sets import SharedVcpus
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.tier import flavor_shares, has_novas_old_default


def is_dedicated(cpus: CpuSet | None, dedicated_cpus: CpuSet) -> bool:
    """Tell whether a vCPU with this CPU set is dedicated: pinned to a single dedicated CPU."""
    return cpus is not None and len(cpus) == 1 and cpus <= dedicated_cpus


def due_weight(domain: Domain, untiered_weight: int | None = None) -> int | None:
    """Return the weight that a guest must have, or ``None`` for the default of the kernel.

    The weight comes from the extra specs of the flavor if Nova has written them into the domain
    (release 32 and newer), otherwise from ``<shares>`` of the domain XML, unless these are the
    default of Nova 25 and older.
    """
    if domain.extra_specs is None:
        stated_weight = None if has_novas_old_default(domain) else domain.shares
        return stated_weight or untiered_weight
    shares = flavor_shares(domain)
    return untiered_weight if shares is None else shares.weight(len(domain.vcpu_sets))


def right_weights(domain: Domain, due: int | None) -> tuple[int | None, ...]:
    """Return the weights that are right for a guest: the due weight, and 1 for a flavor with 1.

    Nova itself writes 1 for ``quota:cpu_shares=1``, and libvirt 9.1 and newer start such a guest
    on cgroup v2 (decision D70).
    """
    shares = flavor_shares(domain)
    flavor_weight = None if shares is None else shares.flavor_weight(len(domain.vcpu_sets))
    return (due, 1) if flavor_weight == 1 else (due,)


def shared_vcpus(
    domain: Domain, weight: Fraction | int, host_cpus: CpuSet, dedicated: CpuSet
) -> Iterator[SharedVcpus]:
    """Yield the shared vCPUs of a guest by their CPUs, with their part of its weight.

    :param weight: with which the guest competes with the other guests.
    :param dedicated: the CPUs to which vCPUs are pinned one by one.
    """
    sets = domain.vcpu_sets
    shared = Counter(
        frozenset(host_cpus if cpus is None else host_cpus & cpus)
        for cpus in sets
        if not is_dedicated(cpus, dedicated)
    )
    for cpus, vcpus in shared.items():
        if not cpus:  # the XML names only CPUs that the host does not have
            continue
        yield SharedVcpus(
            guest=domain.name,
            weight=weight * Fraction(vcpus, len(sets)),
            vcpus=vcpus,
            cpus=cpus,
            has_tier=due_weight(domain) is not None,
        )
