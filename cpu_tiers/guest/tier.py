"""Tiers: what a vCPU of a guest is worth."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import MULTIPLIER, Shares, parse_shares
from cpu_tiers.model.domain import Domain
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU, VCPU_SHARES


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """A tier by name, and a server of it as one would start it."""

    name: str
    shares: Shares
    vcpus: int

    @classmethod
    def parse(cls, name: str, multiplier: str, vcpus: int, *, where: str) -> "Tier":
        """Return the tier of this ``quota:cpu_shares_multiplier``.

        :param where: what to call its flavor in an error.
        :raises InvalidInput: no flavor could have this multiplier and vCPUs.
        """
        specs = {MULTIPLIER: multiplier}
        shares = parse_shares(Flavor(name=where, vcpus=vcpus, memory_mb=1, extra_specs=specs))
        assert shares is not None, "the spec is set"  # noqa: S101  # narrows the type
        return cls(name=name, shares=shares, vcpus=vcpus)

    @property
    def weight(self) -> int:
        """Return the weight of such a server."""
        return self.shares.weight(self.vcpus)

    @property
    def claim(self) -> Mapping[str, int]:
        """Return what such a server claims, all its vCPUs being shared."""
        return {VCPU: self.vcpus, VCPU_SHARES: self.shares.claim(self.vcpus)}


def multiplier_of(domain: Domain) -> Fraction | None:
    """Return a guest's shares for each vCPU, or ``None`` where it has no tier.

    As its flavor says, where Nova has written that; else from its weight.
    """
    flavor = flavor_shares(domain)
    if flavor is not None and flavor.per_vcpu:
        return Fraction(flavor.amount)
    if domain.shares is None or not domain.vcpu_sets:
        return None
    return Fraction(domain.shares, len(domain.vcpu_sets))


def flavor_shares(domain: Domain) -> Shares | None:
    """Return what the flavor says; nothing where that is garbage, as nova-compute does."""
    if not domain.extra_specs:
        return None
    vcpus = max(1, len(domain.vcpu_sets))
    flavor = Flavor(
        name=domain.flavor or "", vcpus=vcpus, memory_mb=1, extra_specs=domain.extra_specs
    )
    with suppress(InvalidInput):
        return parse_shares(flavor)
    return None
