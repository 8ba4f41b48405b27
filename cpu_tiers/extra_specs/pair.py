"""The pair: the two extra specs by which stock Nova gives a server the weight and the shares.

``quota:cpu_shares`` is the weight of the guest, and ``resources:CUSTOM_VCPU_SHARES`` the claim of
the server. A server claims as many shares as its guest weighs. Pure: no I/O, no configuration, no
Nova.
"""

import re
from typing import NamedTuple

from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.extra_specs.groups import parse_groups
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, guest_cpus
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES, parse_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import CUSTOM_SHARES, VCPU_SHARES

CLAIM = f"resources:{CUSTOM_SHARES}"

_CLAIMS = re.compile(r"resources[^:]*:(CUSTOM_)?VCPU_SHARES")


class Pair(NamedTuple):
    """The extra specs that give a flavor its pair.

    :param properties: the values to set; the claim is missing if all vCPUs are dedicated.
    :param remove: the keys to remove.
    """

    properties: dict[str, str]
    remove: tuple[str, ...]

    def is_complete_in(self, flavor: Flavor) -> bool:
        """Tell whether a flavor has the pair already, and nothing to remove."""
        return not self.remove and self.properties.items() <= flavor.extra_specs.items()


def pair_of(flavor: Flavor) -> Pair | None:
    """Return the pair for the tier of a flavor, or ``None`` if the flavor has no tier.

    Both numbers follow the weight of the guest. Dedicated vCPUs claim no shares.

    :raises InvalidInput: the extra specs have a fault, or no pair is equal to the multiplier.
    """
    claims = [key for key in flavor.extra_specs if _CLAIMS.fullmatch(key)]
    shares = parse_shares(flavor)
    if shares is None:
        _refuse_claim_without_weight(flavor, claims)
        return None
    cpus = guest_cpus(flavor).counts
    _refuse_multiplier_of_mixed(flavor, cpus)
    weight = str(shares.weight(flavor.vcpus))
    properties = {SHARES: weight} | ({CLAIM: weight} if cpus.shared else {})
    old = [MULTIPLIER] * (MULTIPLIER in flavor.extra_specs) + claims
    return Pair(properties, tuple(key for key in old if key not in properties))


def _refuse_claim_without_weight(flavor: Flavor, claims: list[str]) -> None:
    if claims:
        raise InvalidInput.of(
            flavor.spec(claims[0]),
            f"shares are claimed, and neither {SHARES} nor {MULTIPLIER} is set",
            f"set {SHARES} to the weight of the guest, or remove the claim",
        )


def _refuse_multiplier_of_mixed(flavor: Flavor, cpus: CpuCounts) -> None:
    if MULTIPLIER in flavor.extra_specs and cpus.shared and cpus.dedicated:
        raise InvalidInput.of(
            flavor.spec(MULTIPLIER),
            f"the weight counts {flavor.vcpus} vCPUs, the claim only {cpus.shared} shared vCPUs",
            f"a pair has one number for both: set {SHARES} to that number in place of the"
            " multiplier, or use the driver of cpu-tiers",
        )


def pair_faults(flavor: Flavor, *, query_vcpu_shares: bool) -> tuple[Fault, ...]:
    """Return the faults of a flavor whose weight and whose claim do not agree.

    Extra specs that cannot be read have faults of their own, and none here.

    :param query_vcpu_shares: ``[filter_scheduler] query_placement_for_vcpu_shares``:
        nova-scheduler claims as many shares as ``quota:cpu_shares`` says.
    """
    try:
        shares, claim = parse_shares(flavor), parse_groups(flavor).amount(VCPU_SHARES)
        cpus = guest_cpus(flavor).counts
    except InvalidInput:
        return ()
    if shares is None:
        return () if claim is None else (_claim_without_weight(flavor, claim),)
    if MULTIPLIER in flavor.extra_specs:
        return () if claim is None else (_claim_beside_multiplier(flavor, claim),)
    expected = shares.claim(cpus.shared)
    if claim is None:
        if query_vcpu_shares or not expected:
            return ()
        return (_weight_without_claim(flavor, expected),)
    return () if claim == expected else (_different(flavor, claim, expected),)


def _claim_without_weight(flavor: Flavor, claim: int) -> Fault:
    return Fault(
        flavor.spec(CLAIM),
        f"{claim} shares are claimed, and the guest gets no weight",
        f"set {SHARES} to {claim}, or remove the claim",
    )


def _claim_beside_multiplier(flavor: Flavor, claim: int) -> Fault:
    return Fault(
        f"flavor {flavor.name}, extra specs {MULTIPLIER} and {CLAIM}",
        f"both are set ({flavor.extra_specs[MULTIPLIER]!r} and {claim})",
        f"the multiplier is the claim, too: remove {CLAIM}; or, for Nova's own driver, replace"
        f" the multiplier by {SHARES}",
    )


def _weight_without_claim(flavor: Flavor, expected: int) -> Fault:
    return Fault(
        flavor.spec(SHARES),
        f"the guest weighs {flavor.extra_specs[SHARES]}, and the server claims no shares",
        f"set {CLAIM} to {expected}, or set [filter_scheduler]"
        " query_placement_for_vcpu_shares = true",
    )


def _different(flavor: Flavor, claim: int, expected: int) -> Fault:
    given = f"the guest weighs {flavor.extra_specs[SHARES]}, and the server claims {claim} shares"
    allowed = f"set {CLAIM} to {expected}" if expected else "remove the claim of dedicated vCPUs"
    return Fault(f"flavor {flavor.name}, extra specs {SHARES} and {CLAIM}", given, allowed)
