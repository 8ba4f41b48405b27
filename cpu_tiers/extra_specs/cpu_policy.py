"""The CPU policy of a server: dedicated, shared or mixed vCPUs.

Spec: use-pcpu-vcpu-in-one-instance, "Instance CPU policy matrix" and "Create
mixed instance via resources:PCPU and resources:VCPU"; decision D4. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList, InvalidInput
from cpu_tiers.extra_specs.choices import choices
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.model.policies import CpuPolicy

POLICY = "hw:cpu_policy"
IMAGE_POLICY = "hw_cpu_policy"

_POLICIES: tuple[CpuPolicy, ...] = ("dedicated", "mixed", "shared")
# Flavor and image: the combinations that the spec's matrix refuses. Nova's
# get_cpu_policy_constraint lets mixed and shared pass, see docs/reference/cpu-differences.rst.
_CONFLICTS = {
    ("shared", "dedicated"),
    ("mixed", "dedicated"),
    ("shared", "mixed"),
    ("mixed", "shared"),
}
_CLAIMS = {"dedicated": (PCPU,), "mixed": (VCPU, PCPU), "shared": (VCPU,)}


class RequestedPolicy(NamedTuple):
    """The CPU policy that a flavor and an image request.

    :param policy: ``None`` if neither of them requests a policy.
    :param shared: the number of shared vCPUs of a mixed server, if the flavor has
        amounts of VCPU and PCPU; ``None`` if a mask names the dedicated vCPUs.
    """

    policy: CpuPolicy | None
    shared: int | None = None


def cpu_policy(flavor: Flavor, image: Image | None) -> CpuPolicy | None:
    """Return the policy of the spec's matrix; ``None`` if flavor and image have none.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: flavor and image contradict each other.
    """
    of_flavor, of_image = choices(flavor, POLICY, image, IMAGE_POLICY, _POLICIES)
    if image is not None and (of_flavor, of_image) in _CONFLICTS:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {POLICY}={of_flavor}, the image {IMAGE_POLICY}={of_image}",
            "the image may not ask for another policy than the flavor",
        )
    return of_flavor or of_image


def requested_policy(
    flavor: Flavor, image: Image | None, own: OwnGroups, emulator_cpus: int | None
) -> RequestedPolicy | None:
    """Return the policy of flavor or image, else the policy that VCPU and PCPU amounts imply.

    :param own: the flavor's own groups.
    :param emulator_cpus: the PCPUs for emulator threads, beside the vCPUs; ``None`` if their
        policy has a fault.
    :returns: ``None`` if ``own`` lacks an amount of VCPU or PCPU, because the amount has a
        fault.
    :raises InvalidInput: the policy or the amounts do not fit the flavor.
    """
    policy = cpu_policy(flavor, image)
    if policy is not None:
        _refuse_own_amounts(flavor, policy, own)
        return RequestedPolicy(policy)
    if lacks_amounts(flavor, own):
        return None
    vcpu, pcpu = own.amount(VCPU), own.amount(PCPU)
    if pcpu:
        if emulator_cpus is not None:
            _check_sum(flavor, vcpu or 0, pcpu, emulator_cpus)
        return RequestedPolicy("mixed", vcpu) if vcpu else RequestedPolicy("dedicated")
    return RequestedPolicy("shared") if vcpu else RequestedPolicy(None)


def lacks_amounts(flavor: Flavor, own: OwnGroups) -> bool:
    """Return whether an extra spec for an amount of VCPU or PCPU was not readable."""
    read = sum(name in group.resources for group in own.groups for name in (VCPU, PCPU))
    given = (key for key in flavor.extra_specs if key.startswith("resources"))
    return sum(key.endswith((f":{VCPU}", f":{PCPU}")) for key in given) > read


def _check_sum(flavor: Flavor, vcpu: int, pcpu: int, emulator_cpus: int) -> None:
    needed = flavor.vcpus + emulator_cpus
    if vcpu + pcpu != needed:
        keys = "resources:VCPU and resources:PCPU" if vcpu else "resources:PCPU"
        raise InvalidInput.of(
            f"flavor {flavor.name}, extra specs {keys}",
            f"{vcpu} + {pcpu} CPUs" if vcpu else f"{pcpu} CPUs",
            f"the amounts must add up to {needed}, the CPUs of the server",
        )
    # The emulator threads get their PCPU first, so a server with 1 PCPU has no dedicated vCPU.
    if pcpu <= emulator_cpus:
        raise InvalidInput.of(
            flavor.spec(f"resources:{PCPU}"),
            f"{pcpu}, which emulator threads use up",
            "a mixed server needs at least one dedicated vCPU",
        )


def _refuse_own_amounts(flavor: Flavor, policy: CpuPolicy, own: OwnGroups) -> None:
    """Refuse amounts of VCPU and PCPU beside a policy, which says the same in another way.

    An amount of 0 is allowed for a class that the policy does not claim.

    :raises ConflictingExtraSpecs: there are such amounts.
    """
    faults = FaultList()
    for name in (VCPU, PCPU):
        amount = own.amount(name)
        if amount or (amount == 0 and name in _CLAIMS[policy]):
            with faults:
                raise ConflictingExtraSpecs.of(
                    f"flavor {flavor.name}, extra specs {POLICY} and resources:{name}",
                    f"the policy {policy} and an amount of {amount}",
                    "remove either the policy or the amount",
                )
    faults.raise_if_any()
