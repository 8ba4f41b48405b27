"""The pair: the two extra specs by which stock Nova gives a server the weight and the shares.

``quota:cpu_shares`` is the weight of the guest, and ``resources:CUSTOM_VCPU_SHARES`` the amount of
the server. A server requests as many shares as its guest weighs. Pure: no I/O, no configuration,
no Nova.
"""

import re
import shlex
from typing import NamedTuple

from cpu_tiers.errors import Fault, FaultList, InvalidInput
from cpu_tiers.extra_specs.guest_cpus import CpuCounts, guest_cpus
from cpu_tiers.extra_specs.shares import MULTIPLIER, SHARES, parse_shares
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import VCPU_SHARES
from cpu_tiers.tools.tiers.ladder import Step
from cpu_tiers.translators.contract import ServerRequest

AMOUNT = f"resources:{VCPU_SHARES}"

_AMOUNTS = re.compile(r"resources[^:]*:(CUSTOM_)?VCPU_SHARES")


class Pair(NamedTuple):
    """The extra specs that give a flavor its pair.

    :param properties: the values to set; the amount is missing if all vCPUs are dedicated.
    :param remove: the keys to remove.
    """

    properties: dict[str, str]
    remove: tuple[str, ...]

    def is_complete_in(self, flavor: Flavor) -> bool:
        """Tell whether a flavor has the pair already, and nothing to remove."""
        return not self.remove and self.properties.items() <= flavor.extra_specs.items()


def pair_of(flavor: Flavor) -> Pair | None:
    """Return the pair for the tier of a flavor, or ``None`` if the flavor has no tier.

    Both numbers follow the weight of the guest. Dedicated vCPUs request no shares.

    :raises InvalidInput: the extra specs have a fault, or no pair is equal to the multiplier.
    """
    amounts = [key for key in flavor.extra_specs if _AMOUNTS.fullmatch(key)]
    shares = parse_shares(flavor)
    if shares is None and amounts:
        raise InvalidInput.of(
            flavor.spec(amounts[0]),
            f"shares are requested, and neither {SHARES} nor {MULTIPLIER} is set",
            f"set {SHARES} to the weight of the guest, or remove the amount",
        )
    if shares is None:
        return None
    cpus = guest_cpus(flavor).counts
    _refuse_two_numbers(flavor, cpus)
    weight = str(shares.weight(flavor.vcpus))
    properties = {SHARES: weight} | ({AMOUNT: weight} if cpus.shared else {})
    old = [MULTIPLIER] * (MULTIPLIER in flavor.extra_specs) + amounts
    return Pair(properties, tuple(key for key in old if key not in properties))


def _refuse_two_numbers(flavor: Flavor, cpus: CpuCounts) -> None:
    """Refuse a multiplier of a mixed flavor, whose weight and whose request differ."""
    if MULTIPLIER in flavor.extra_specs and cpus.shared and cpus.dedicated:
        raise InvalidInput.of(
            flavor.spec(MULTIPLIER),
            f"the weight counts {flavor.vcpus} vCPUs, the request only {cpus.shared} shared vCPUs",
            f"a pair has one number for both: set {SHARES} to that number in place of the"
            " multiplier, or use the driver of cpu-tiers",
        )


def pair_faults(
    flavor: Flavor, *, query_vcpu_shares: bool, step: Step | None = None
) -> tuple[Fault, ...]:
    """Return the faults of a flavor whose weight and whose request do not agree.

    Extra specs that cannot be read have faults of their own, and none here.

    :param query_vcpu_shares: ``[filter_scheduler] query_placement_for_vcpu_shares``:
        nova-scheduler requests as many shares as ``quota:cpu_shares`` says.
    :param step: the step of the cloud, which decides about remedies; ``None`` if only files are
        read.
    """
    try:
        shares, amount = parse_shares(flavor), ServerRequest(flavor).own_groups.amount(VCPU_SHARES)
        cpus = guest_cpus(flavor).counts
    except InvalidInput:
        return ()
    faults, specs = FaultList(), flavor.extra_specs
    expected = shares.requested(cpus.shared) if shares else 0
    if shares is None and amount is not None:
        faults.add(
            flavor.spec(AMOUNT),
            f"{amount} shares are requested, and the guest gets no weight",
            f"set {SHARES} to {amount}, or remove the amount",
        )
    elif MULTIPLIER in specs and amount is not None:
        faults.add(
            f"flavor {flavor.name}, extra specs {MULTIPLIER} and {AMOUNT}",
            f"both are set ({specs[MULTIPLIER]!r} and {amount})",
            _remedy_of_both(step),
        )
    elif MULTIPLIER in specs and shares and step is not None and not step.requests_shares:
        faults.add(
            flavor.spec(MULTIPLIER),
            "no effect on this cloud: nova-scheduler requests no shares for a multiplier, and"
            " Nova's own driver gives the guest no weight",
            f"run cpu-tiers flavor pair --flavor {shlex.quote(flavor.name)} | sh, and resize the"
            " servers of the flavor to another flavor with a pair; or give --config-file of your"
            " nova-scheduler",
        )
    elif SHARES in specs and amount is None and expected and not query_vcpu_shares:
        faults.add(
            flavor.spec(SHARES),
            f"the guest weighs {specs[SHARES]}, and the server requests no shares",
            _remedy_without_amount(expected, step),
        )
    elif SHARES in specs and amount not in (None, expected):
        faults.add(*_other_amount(flavor, amount, expected))
    return tuple(faults.faults)


def _other_amount(flavor: Flavor, amount: int | None, expected: int) -> Fault:
    """Return the fault of a flavor whose amount is not the weight of the guest."""
    return Fault(
        f"flavor {flavor.name}, extra specs {SHARES} and {AMOUNT}",
        f"the guest weighs {flavor.extra_specs[SHARES]}, and the server requests {amount} shares",
        f"set {AMOUNT} to {expected}" if expected else "remove the amount of dedicated vCPUs",
    )


def _remedy_without_amount(expected: int, step: Step | None) -> str:
    """Return the remedy for a flavor with a weight and without an amount."""
    remedy = f"set {AMOUNT} to {expected}"
    if step is None or step > Step.NOVAS_DRIVER:
        # Without the weigher, no nova-scheduler reads the option.
        remedy += ", or set [filter_scheduler] query_placement_for_vcpu_shares = true"
    return remedy


def _remedy_of_both(step: Step | None) -> str:
    """Return the remedy for a flavor with a multiplier and with an amount."""
    remove = f"the multiplier is the request, too: remove {AMOUNT}"
    replace = f"replace the multiplier by {SHARES}"
    if step is None:
        return f"{remove}; or, for Nova's own driver, {replace}"
    return remove if step.requests_shares else f"Nova's own driver knows no multiplier: {replace}"
