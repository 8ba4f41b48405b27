"""Tiers of CPU performance, and the tier of a guest: its CPU shares for each vCPU."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER, Shares, effective_shares, parse_shares
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.tools.tiers.domain import Domain
from cpu_tiers.tools.tiers.pair import pair_faults

_OLD_DEFAULT = 1024

_DIVISIBLE_MB = 2**20
"""The memory of a flavor whose memory is not known; powers of 2 divide it into NUMA nodes."""

NO_TIER = "no tier"
"""The name of what has no CPU shares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A tier, and the number of vCPUs of a server that someone may start in this tier."""

    name: str
    shares: Shares
    vcpus: int

    @classmethod
    def parse(cls, name: str, multiplier: str, vcpus: int, *, where: str) -> "Tier":
        """Return the tier with this value of ``quota:cpu_shares_multiplier``.

        :param where: the name of the flavor in an error.
        :raises InvalidInput: no flavor can have this multiplier with this number of vCPUs.
        """
        specs = {MULTIPLIER: multiplier}
        shares = parse_shares(Flavor(name=where, vcpus=vcpus, memory_mb=1, extra_specs=specs))
        assert shares is not None, "the spec is set"  # noqa: S101  # narrows the type
        return cls(name=name, shares=shares, vcpus=vcpus)

    @property
    def weight(self) -> int:
        """Return the weight of a server of this tier."""
        return self.shares.weight(self.vcpus)

    @property
    def requested_amounts(self) -> Mapping[str, int]:
        """Return the amounts that a server of this tier requests; all its vCPUs are shared."""
        return {VCPU: self.vcpus, VCPU_SHARES: self.shares.requested(self.vcpus)}


def multiplier_of(domain: Domain) -> Fraction | None:
    """Return the CPU shares for each vCPU of a guest, or ``None`` if the guest has no tier.

    The multiplier comes from the flavor if Nova has written its extra specs into the domain
    (release 32 and newer), otherwise from the weight in the domain XML.
    """
    flavor = flavor_shares(domain)
    if flavor is not None and flavor.per_vcpu:
        return Fraction(flavor.amount)
    if domain.shares is None or not domain.vcpu_sets or has_novas_old_default(domain):
        return None
    return Fraction(domain.shares, len(domain.vcpu_sets))


def requested_amounts(domain: Domain, shared_cpus: CpuSet) -> Mapping[str, int]:
    """Return the VCPU and VCPU_SHARES that a guest requests of Placement, decision D2.

    :param shared_cpus: the CPUs of ``cpu_shared_set``. A vCPU that may run on one of these
        CPUs is shared. Any other vCPU is dedicated, and requests no VCPU and no VCPU_SHARES.
    """
    sets = domain.vcpu_sets
    shared = sum(cpus is None or not shared_cpus.isdisjoint(cpus) for cpus in sets)
    return {VCPU: shared, VCPU_SHARES: _requested_shares(domain, shared)}


def _requested_shares(domain: Domain, shared_vcpus: int) -> int:
    if domain.extra_specs is not None:
        shares = flavor_shares(domain)
        return 0 if shares is None else shares.requested(shared_vcpus)
    # Nova older than release 32 does not write the extra specs into the domain.
    multiplier = multiplier_of(domain)
    # Rounded half up, as Shares.requested does.
    return 0 if multiplier is None else int(multiplier * shared_vcpus + Fraction(1, 2))


def has_novas_old_default(domain: Domain) -> bool:
    """Tell whether a guest has the weight that Nova 25 and older give each guest without a tier.

    The weight is 1024 for each vCPU. It is in the domain XML as a weight of a flavor would be.
    Source: Nova 25, ``LibvirtDriver._update_guest_cputune``.
    """
    default = _OLD_DEFAULT * len(domain.vcpu_sets)
    return domain.extra_specs is None and bool(default) and domain.shares == default


def unnamed_tier(multiplier: Fraction | float | None) -> str:
    """Return a name for a tier without a name, such as ``multiplier 2.5``."""
    return NO_TIER if multiplier is None else f"multiplier {float(multiplier):g}"


def tier_of_amounts(allocations: Iterable[Mapping[str, int]], tiers: Iterable[Tier]) -> str:
    """Return the name of the tier that the allocations of a server belong to.

    A tier with a name is the tier of each server that has the VCPU_SHARES which the tier requests
    for the server's number of VCPU. A server without VCPU_SHARES has no tier: the server has none,
    has only dedicated vCPUs, or its cloud does not request VCPU_SHARES.

    :param allocations: the amounts of each provider.
    """
    held = Counter[str]()
    for amounts in allocations:
        held.update(amounts)
    shares, vcpus = held[VCPU_SHARES], held[VCPU]
    if not shares or not vcpus:
        return NO_TIER
    multiplier = Fraction(shares, vcpus)
    # Shares are rounded, so several tiers may request the same: an exact multiplier comes first.
    for tier in sorted(tiers, key=lambda t: abs(Fraction(t.shares.amount) - multiplier)):
        if tier.shares.requested(vcpus) == shares:
            return tier.name
    return unnamed_tier(multiplier)


def flavor_shares(domain: Domain) -> Shares | None:
    """Return the CPU shares from the flavor of a guest, or ``None`` without shares in the flavor.

    Extra specs with a fault set none (decision D72).
    """
    flavor = _flavor(domain)
    return None if flavor is None else effective_shares(flavor)


def shares_faults(domain: Domain) -> tuple[Fault, ...]:
    """Return the faults of the extra specs for shares in the flavor of a guest.

    A weight without a request is none: whether nova-scheduler requests shares by the weight shows
    in the allocation.
    """
    flavor = _flavor(domain)
    if flavor is None:
        return ()
    try:
        parse_shares(flavor)
    except InvalidInput as error:
        return error.faults
    return pair_faults(flavor, query_vcpu_shares=True)


def _flavor(domain: Domain) -> Flavor | None:
    """Return the flavor with vCPUs and extra specs, if Nova has written it into the domain."""
    if not domain.extra_specs:
        return None
    vcpus = max(1, len(domain.vcpu_sets))  # a Flavor has at least one vCPU
    return Flavor(
        name=domain.flavor or "",
        vcpus=vcpus,
        memory_mb=_DIVISIBLE_MB,
        extra_specs=domain.extra_specs,
    )
