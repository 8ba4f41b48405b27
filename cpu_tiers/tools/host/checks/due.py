"""The debt of a host to its guests: the due CPUs of each vCPU. Pure.

The due CPUs never sink with an offender: a guest without a tier counts with the least weight, and
a weight that somebody raised counts as the weight that the guest must have.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from cpu_tiers.extra_specs.shares import LEAST_GUEST_WEIGHT
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.guest_weight import due_weight, is_dedicated
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import Sale
from cpu_tiers.tools.tiers.tier import requested_amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Dues:
    """The sold CPUs of a guest, and the due CPUs while all its vCPUs want to run.

    :param sold: CPUs of the whole guest; 0 without a tier.
    :param vcpus: the CPUs that are due to each vCPU, without the quotas of the guest.
    :param cap: the CPUs that the quotas of the guest leave its vCPUs; ``None`` without quotas.
    """

    sold: Fraction
    vcpus: tuple[Fraction, ...]
    cap: Fraction | None = None

    @property
    def cap_cpus(self) -> float | None:
        """Return the cap as a number for a measurement."""
        return None if self.cap is None else float(self.cap)

    @property
    def cpus(self) -> Fraction:
        """Return the CPUs that are due to the guest."""
        due = sum(self.vcpus, Fraction(0))
        return due if self.cap is None else min(due, self.cap)


def dues_of(host: Occupancy, dedicated_cpus: CpuSet, sale: Sale | None) -> Mapping[str, Dues]:
    """Return what is due to each guest, by its name.

    :param host: the guests, with the weights that they must have.
    :param dedicated_cpus: the CPUs to which vCPUs are pinned one by one.
    :param sale: what the host sells; without it, nothing is due.
    """
    floors = replace(host, domains=tuple(map(_at_most_least, host.domains))).vcpu_floors()
    return {
        domain.name: _dues(domain, host.shared_cpus, dedicated_cpus, sale, floors[domain.name])
        for domain in host.domains
    }


def evidence_dues(evidence: Evidence) -> Mapping[str, Dues]:
    """Return what is due to each guest of an audited host, by its name."""
    return dues_of(evidence.host, evidence.dedicated_cpus, evidence.sale)


def _at_most_least(domain: Domain) -> Domain:
    """Return a guest without a tier with the least weight, and each other guest as it is."""
    return domain if due_weight(domain) else replace(domain, weight=LEAST_GUEST_WEIGHT)


def _dues(
    domain: Domain,
    shared_cpus: CpuSet,
    dedicated_cpus: CpuSet,
    sale: Sale | None,
    floors: tuple[Fraction, ...],
) -> Dues:
    shared = [not is_dedicated(cpus, dedicated_cpus) for cpus in domain.vcpu_sets]
    count = sum(shared)
    claim = requested_amounts(domain, shared_cpus if count else CpuSet())[VCPU_SHARES]
    if not claim or sale is None:
        return Dues(sold=Fraction(0), vcpus=(Fraction(0),) * len(floors), cap=domain.cap)
    sold = sale.sold(claim, count)
    vcpus = tuple(
        min(sold / count, floor) if is_shared else Fraction(0)
        for floor, is_shared in zip(floors, shared, strict=True)
    )
    return Dues(sold=sold, vcpus=vcpus, cap=domain.cap)
