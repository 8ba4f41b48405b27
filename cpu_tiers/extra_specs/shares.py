"""The CPU shares of a flavor: ``quota:cpu_shares_multiplier`` and ``quota:cpu_shares``.

Products are computed in decimal and exactly, before they are rounded. Spec:
cpu-performance-service-levels, "CPU Share Management"; decision D2. Pure: no I/O,
no configuration, no Nova.
"""

import functools
import re
from contextlib import suppress
from decimal import MAX_EMAX, MAX_PREC, ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.model.flavor import Flavor

MULTIPLIER = "quota:cpu_shares_multiplier"
SHARES = "quota:cpu_shares"

MIN_WEIGHT = 1

MAX_WEIGHT = 10000
"""The range of a weight in cgroup v2 (``cpu.weight``). The kernel refuses other weights there."""

LEAST_GUEST_WEIGHT = 2
"""The weight of a guest whose flavor has a weight of 1. libvirt refuses 1 on cgroup v1,
and before version 9.1 also on v2. A guest may migrate to a host of any version (decision D70)."""

# The default context keeps 28 digits, and the text of a multiplier may have more: a product that
# was rounded before could be rounded to another whole number.
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX)
_DECIMAL = r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)"
_WHOLE = r"\+?[0-9]+"


class Shares(NamedTuple):
    """The shares of a flavor.

    :param amount: the multiplier, or the shares of the whole domain.
    :param per_vcpu: whether ``amount`` is a multiplier.
    """

    amount: Decimal
    per_vcpu: bool

    def weight(self, vcpus: int) -> int:
        """Return the weight of a domain with this number of vCPUs, shared and dedicated.

        The weight among all domains of the host (decision D2), at least
        :data:`LEAST_GUEST_WEIGHT`.
        """
        return max(LEAST_GUEST_WEIGHT, self.flavor_weight(vcpus))

    def flavor_weight(self, vcpus: int) -> int:
        """Return the number of shares that the flavor states for this number of vCPUs."""
        product = _EXACT.multiply(self.amount, Decimal(vcpus if self.per_vcpu else 1))
        return int(product.to_integral_value(ROUND_HALF_UP, _EXACT))

    def requested(self, shared_vcpus: int) -> int:
        """Return the VCPU_SHARES that a server with this number of shared vCPUs requests.

        Dedicated vCPUs do not compete for the shared CPUs of a host, and request none.
        """
        return self.flavor_weight(shared_vcpus) if shared_vcpus else 0


def parse_shares(flavor: Flavor) -> Shares | None:
    """Return the shares of a flavor, or ``None`` if neither extra spec is set.

    :raises ConflictingExtraSpecs: both extra specs are set.
    :raises InvalidInput: a value is not a number, or its weight is out of range.
    """
    multiplier = flavor.extra_specs.get(MULTIPLIER)
    shares = flavor.extra_specs.get(SHARES)
    if multiplier is not None and shares is not None:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, extra specs {MULTIPLIER} and {SHARES}",
            f"both are set ({multiplier!r} and {shares!r})",
            "both set the weight of the server: remove one of them",
        )
    if multiplier is not None:
        return _checked(flavor, MULTIPLIER, parse_multiplier(multiplier, flavor.spec(MULTIPLIER)))
    if shares is not None:
        return _checked(flavor, SHARES, _parse_domain_shares(shares, flavor.spec(SHARES)))
    return None


def effective_shares(flavor: Flavor) -> Shares | None:
    """Return the shares of a server that exists: none if the shares of its flavor have a fault.

    Every part of cpu-tiers that handles servers which exist calls this function (decision D72).
    """
    with suppress(InvalidInput):
        return parse_shares(flavor)
    return None


def domain_shares(flavor: Flavor) -> int | None:
    """Return the CPU shares of a domain, 2 to 10000, or ``None`` if the flavor sets none.

    :raises InvalidInput: see :func:`parse_shares`.
    """
    shares = parse_shares(flavor)
    return None if shares is None else shares.weight(flavor.vcpus)


def parse_multiplier(text: str, where: str) -> Shares:
    """Read a multiplier, before the number of vCPUs is known.

    :param where: the name of the text in an error message.
    :raises InvalidInput: the text is not a decimal number above 0 and up to 10000.
    """
    amount = _decimal(text)
    if amount is None or not 0 < amount <= MAX_WEIGHT:
        allowed = f"give a decimal number above 0 and up to {MAX_WEIGHT}, such as 100 or 2.5"
        raise InvalidInput.of(where, f"got {text!r}", allowed)
    return Shares(amount=amount, per_vcpu=True)


@functools.lru_cache(maxsize=1024)
def _decimal(text: str) -> Decimal | None:
    """Return a number without an exponent. The flavors of a cloud have few multipliers."""
    return Decimal(text) if re.fullmatch(_DECIMAL, text) else None


def _parse_domain_shares(text: str, where: str) -> Shares:
    if not re.fullmatch(_WHOLE, text) or not MIN_WEIGHT <= Decimal(text) <= MAX_WEIGHT:
        allowed = f"give a whole number from {MIN_WEIGHT} to {MAX_WEIGHT}"
        raise InvalidInput.of(where, f"got {text!r}", allowed)
    return Shares(amount=Decimal(text), per_vcpu=False)


def _checked(flavor: Flavor, key: str, shares: Shares) -> Shares:
    weight = shares.flavor_weight(flavor.vcpus)
    if MIN_WEIGHT <= weight <= MAX_WEIGHT:
        return shares
    raise InvalidInput.of(
        flavor.spec(key),
        f"{shares.amount} x {flavor.vcpus} vCPUs is a weight of {weight}",
        f"the kernel takes weights from {MIN_WEIGHT} to {MAX_WEIGHT}",
    )
