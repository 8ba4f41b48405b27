"""The debt of a host to its guests: the due CPUs of each vCPU. Pure.

The due CPUs never sink with an offender: a guest without a tier counts with the least weight, and
a weight that somebody raised counts as the weight that the guest must have. Nor do they sink
because guests with a tier that may run on a set of CPUs, such as a NUMA node, weigh more than its
part of the shares: then so much is due as the kernel keeps on a set that is sold full, if this is
more than the floor (:meth:`~cpu_tiers.tools.tiers.sold.Sale.promised`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, partial

from cpu_tiers.extra_specs.shares import LEAST_GUEST_WEIGHT
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.host.checks.evidence import Evidence
from cpu_tiers.tools.host.checks.guest_weight import due_weight, is_dedicated, shared_vcpus
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import Sale
from cpu_tiers.tools.tiers.tier import requested_amounts

ZERO = Fraction(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dues:
    """The sold CPUs of a guest, and the due CPUs while all its vCPUs want to run.

    :param sold: CPUs of the whole guest; 0 without a tier.
    :param vcpus: the CPUs that are due to each vCPU, without the quotas of the guest.
    :param cap: the CPUs that the quotas of the guest leave its vCPUs; ``None`` without quotas.
    :param claim: the VCPU_SHARES that the tier of the guest requests.
    """

    sold: Fraction
    vcpus: tuple[Fraction, ...]
    cap: Fraction | None = None
    claim: int = 0

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

    kept_of = partial(_FullSets(host, dedicated_cpus, sale).kept, host.default_weight)

    def dues(domain: Domain) -> Dues:
        shared = [not is_dedicated(cpus, dedicated_cpus) for cpus in domain.vcpu_sets]
        count = sum(shared)
        claim = requested_amounts(domain, host.shared_cpus if count else CpuSet())[VCPU_SHARES]
        if not claim or sale is None:
            return Dues(sold=ZERO, vcpus=(ZERO,) * len(shared), cap=domain.cap, claim=claim)
        sold, sets = sale.sold(claim, count), list(map(host.present, domain.vcpu_sets))
        vcpus = []
        for cpus, floor, is_shared in zip(sets, floors[domain.name], shared, strict=True):
            on_set = sets.count(cpus)
            kept = kept_of(claim * on_set // count, on_set, cpus)
            vcpus.append(min(sold / count, max(floor, kept)) if is_shared else ZERO)
        return Dues(sold=sold, vcpus=tuple(vcpus), cap=domain.cap, claim=claim)

    return {domain.name: dues(domain) for domain in host.domains}


class _FullSets:
    """What the kernel keeps of sold CPUs on sets of CPUs that are sold full."""

    def __init__(self, host: Occupancy, dedicated_cpus: CpuSet, sale: Sale | None) -> None:
        self._sale = sale
        self._with_tier = [
            vcpus
            for domain in host.domains
            for vcpus in shared_vcpus(domain, host.weight(domain), host.cpus, dedicated_cpus)
            if vcpus.has_tier
        ]
        # A host has many guests of the same flavor, and few CPU sets.
        self._is_crowded, self.kept = cache(self._crowded), cache(self._kept)

    def _crowded(self, sale: Sale, cpus: frozenset[int]) -> bool:
        """Tell whether guests with a tier weigh more than the part of a set of the shares."""
        weight = sum(vcpus.weight for vcpus in self._with_tier if vcpus.cpus & cpus)
        return weight > sale.for_sale_per_cpu * len(cpus)

    def _kept(self, default_weight: int, claim: int, vcpus: int, cpus: frozenset[int]) -> Fraction:
        """Return the CPUs of each of some vCPUs; 0 on a set whose floors hold as they are."""
        if self._sale is None or not self._is_crowded(self._sale, cpus):
            return ZERO
        return self._sale.on(len(cpus)).promised(claim, vcpus, default_weight) / vcpus


def evidence_dues(evidence: Evidence) -> Mapping[str, Dues]:
    """Return what is due to each guest of an audited host, by its name."""
    return dues_of(evidence.host, evidence.dedicated_cpus, evidence.sale)


def _at_most_least(domain: Domain) -> Domain:
    """Return a guest without a tier with the least weight, and each other guest as it is."""
    return domain if due_weight(domain) else replace(domain, weight=LEAST_GUEST_WEIGHT)
