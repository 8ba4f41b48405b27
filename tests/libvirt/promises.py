"""What is due to the guests of a contest, and what of it is missing.

The host of a contest sells its two CPUs for the shares of all guests with a tier: it is sold full.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.host.checks.delivery import TOLERANCE
from cpu_tiers.tools.host.checks.due import Dues, dues_of
from cpu_tiers.tools.host.checks.guest_weight import due_weight
from cpu_tiers.tools.libvirt.domain import parse_domain, write_domain
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.occupancy import Occupancy
from cpu_tiers.tools.tiers.sold import Sale
from cpu_tiers.tools.tiers.tier import requested_amounts
from tests.libvirt.contestants import Contest

CPUS = CpuSet({0, 1})


def sale_of(contest: Contest) -> Sale | None:
    """Return what the host of a contest sells; ``None`` without a guest with a tier."""
    claims = (requested_amounts(domain, CPUS)[VCPU_SHARES] for domain in _domains(contest))
    shares = sum(claims)
    return Sale(cpus=len(CPUS), shares=Fraction(shares)) if shares else None


def dues_of_contest(contest: Contest, default_weight: int) -> Mapping[str, Dues]:
    """Return what is due to each guest, by its name."""
    domains = tuple(
        replace(domain, weight=due_weight(domain) or default_weight)
        for domain in _domains(contest)
    )
    host = Occupancy(
        domains=domains,
        cpus=CPUS,
        shared_cpus=CPUS,
        default_weight=default_weight,
        services={},
        inventories={},
    )
    return dues_of(host, CpuSet(), sale_of(contest))


def vcpu_rates(
    contest: Contest, default_weight: int
) -> dict[str, dict[frozenset[int], list[float]]]:
    """Return the CPUs that are due to each vCPU, by guest and by the CPUs of the vCPU."""
    dues = dues_of_contest(contest, default_weight)
    rates = {}
    for domain in _domains(contest):
        by_set = defaultdict[frozenset[int], list[float]](list)
        for cpus, rate in zip(domain.vcpu_sets, dues[domain.name].vcpus, strict=True):
            by_set[frozenset(cpus or CPUS)].append(float(rate))
        rates[domain.name] = dict(by_set)
    return rates


def missing_cpus(due: float, received: float) -> float:
    """Return what a busy guest lacks of what is due; 0 if it is less than a tenth."""
    missing = due - received
    return missing if missing > TOLERANCE * due else 0.0


def has_offender(contest: Contest) -> bool:
    """Tell whether a guest has no tier, or its QEMU is busy, which no inventory counts here."""
    return any(
        guest.busy_emulator or "quota:cpu_shares" not in guest.guest.flavor.extra_specs
        for guest in contest.contestants
    )


def _domains(contest: Contest) -> tuple[Domain, ...]:
    return tuple(
        parse_domain(write_domain(contestant.guest).encode(), where=contestant.name)
        for contestant in contest.contestants
    )
