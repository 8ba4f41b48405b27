"""Whether the vCPUs of a server are dedicated, shared, or some of each.

Spec: use-pcpu-vcpu-in-one-instance, "Instance CPU policy matrix" and "Create
mixed instance via resources:PCPU and resources:VCPU"; decision D4. Pure.
"""

from __future__ import annotations

from typing import NamedTuple

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList, InvalidInput
from cpu_tiers.extra_specs.choices import flavor_choice, image_choice
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import PCPU, VCPU
from cpu_tiers.model.policies import CpuPolicy

POLICY = "hw:cpu_policy"
IMAGE_POLICY = "hw_cpu_policy"

_POLICIES: tuple[CpuPolicy, ...] = ("dedicated", "mixed", "shared")
_CONFLICTS = {
    ("shared", "dedicated"),
    ("mixed", "dedicated"),
    ("shared", "mixed"),
    ("mixed", "shared"),
}
_CLAIMS = {"dedicated": (PCPU,), "mixed": (VCPU, PCPU), "shared": (VCPU,)}


class AskedPolicy(NamedTuple):
    """A CPU policy, and how it was asked for.

    :param shared: how many vCPUs are shared, where amounts of VCPU and PCPU
        say so; ``None`` where a mask has to.
    """

    policy: CpuPolicy | None
    shared: int | None = None


def cpu_policy(flavor: Flavor, image: Image | None) -> CpuPolicy | None:
    """Return the cell of the policy matrix, ``None`` for undefined.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: flavor and image contradict each other.
    """
    wanted = flavor_choice(flavor, POLICY, _POLICIES)
    asked = image_choice(image, IMAGE_POLICY, _POLICIES)
    if image is not None and (wanted, asked) in _CONFLICTS:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {POLICY}={wanted}, the image {IMAGE_POLICY}={asked}",
            "the image may not ask for another policy than the flavor",
        )
    return wanted or asked


def asked_policy(
    flavor: Flavor, image: Image | None, own: OwnGroups, emulator_cpus: int
) -> AskedPolicy:
    """Return the policy, from the amounts of VCPU and PCPU where nothing else sets one.

    :param own: the flavor's own groups.
    :param emulator_cpus: PCPUs that emulator threads take beside the vCPUs.
    :raises InvalidInput: policy and amounts do not fit the flavor.
    """
    policy = cpu_policy(flavor, image)
    if policy is not None:
        _refuse_own_amounts(flavor, policy, own)
        return AskedPolicy(policy)
    vcpu, pcpu = own.amount(VCPU), own.amount(PCPU)
    if pcpu:
        _check_sum(flavor, vcpu or 0, pcpu, emulator_cpus)
        return AskedPolicy("mixed", vcpu) if vcpu else AskedPolicy("dedicated")
    return AskedPolicy("shared") if vcpu else AskedPolicy(None)


def _check_sum(flavor: Flavor, vcpu: int, pcpu: int, emulator_cpus: int) -> None:
    needed = flavor.vcpus + emulator_cpus
    if vcpu + pcpu != needed:
        keys = "resources:VCPU and resources:PCPU" if vcpu else "resources:PCPU"
        raise InvalidInput.of(
            f"flavor {flavor.name}, extra specs {keys}",
            f"{vcpu} + {pcpu} CPUs" if vcpu else f"{pcpu} CPUs",
            f"they must add up to {needed}, the CPUs of the server",
        )
    if pcpu <= emulator_cpus:
        raise InvalidInput.of(
            flavor.spec(f"resources:{PCPU}"),
            f"{pcpu}, all of them for emulator threads",
            "a mixed server needs at least one dedicated vCPU",
        )


def _refuse_own_amounts(flavor: Flavor, policy: CpuPolicy, own: OwnGroups) -> None:
    """Refuse amounts beside a policy, but for a 0 of what the policy does not claim."""
    faults = FaultList()
    for name in (VCPU, PCPU):
        amount = own.amount(name)
        if amount or (amount == 0 and name in _CLAIMS[policy]):
            with faults:
                raise ConflictingExtraSpecs.of(
                    f"flavor {flavor.name}, extra specs {POLICY} and resources:{name}",
                    f"the policy {policy} and an amount of {amount}",
                    "say it in one of the two ways",
                )
    faults.raise_if_any()
