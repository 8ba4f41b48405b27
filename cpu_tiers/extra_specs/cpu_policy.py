"""How many vCPUs of a server are dedicated, and how many are shared.

Spec: use-pcpu-vcpu-in-one-instance, "Instance CPU policy matrix"; decision
D4. Pure: flavor and image in, counts out.
"""

from typing import NamedTuple

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.emulator_threads import isolates_emulator_threads
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.cpu_set import MAX_CPU, CpuSet
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import PCPU, VCPU

POLICY = "hw:cpu_policy"
IMAGE_POLICY = "hw_cpu_policy"
DEDICATED_MASK = "hw:cpu_dedicated_mask"
REALTIME_MASK = "hw:cpu_realtime_mask"
IMAGE_REALTIME_MASK = "hw_cpu_realtime_mask"

_POLICIES = ("dedicated", "mixed", "shared")
_CONFLICTS = {
    ("shared", "dedicated"),
    ("mixed", "dedicated"),
    ("shared", "mixed"),
    ("mixed", "shared"),
}


class CpuCounts(NamedTuple):
    """The CPUs of one server, by what they are taken from.

    :param emulator: dedicated host CPUs for emulator threads, 0 or 1.
    """

    shared: int
    dedicated: int
    emulator: int = 0


def cpu_policy(flavor: Flavor, image: Image | None) -> str | None:
    """Return ``dedicated``, ``mixed``, ``shared``, or ``None`` for undefined.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: flavor and image contradict each other.
    """
    wanted = _policy(flavor.extra_specs.get(POLICY), flavor.spec(POLICY))
    if image is None:
        return wanted
    where = f"image {image.name}, property {IMAGE_POLICY}"
    asked = _policy(image.properties.get(IMAGE_POLICY), where)
    if (wanted, asked) in _CONFLICTS:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {POLICY}={wanted}, the image {IMAGE_POLICY}={asked}",
            "the image may not ask for another policy than the flavor",
        )
    return wanted or asked


def cpu_counts(flavor: Flavor, image: Image | None, own: OwnGroups) -> CpuCounts:
    """Return how the vCPUs of a server divide.

    :param own: the flavor's own groups, whose VCPU and PCPU decide where no
        policy is set.
    :raises InvalidInput: policy, masks and amounts do not fit together.
    """
    policy = cpu_policy(flavor, image)
    isolated = isolates_emulator_threads(flavor)
    if policy is None:
        counts = _counts_from_resources(flavor, own, isolated)
    else:
        _refuse_own_amounts(flavor, policy, own)
        dedicated = {"dedicated": flavor.vcpus, "shared": 0}.get(policy)
        dedicated = _masked(flavor, image) if dedicated is None else dedicated
        counts = CpuCounts(
            shared=flavor.vcpus - dedicated, dedicated=dedicated, emulator=int(isolated)
        )
    if isolated and not counts.dedicated:
        raise InvalidInput.of(
            flavor.spec("hw:emulator_threads_policy"),
            "isolate, on a server without dedicated CPUs",
            "isolated emulator threads need hw:cpu_policy dedicated or mixed",
        )
    return counts


def _policy(value: str | None, where: str) -> str | None:
    if value is not None and value not in _POLICIES:
        raise InvalidInput.of(where, f"got {value!r}", f"give one of {', '.join(_POLICIES)}")
    return value


def _counts_from_resources(flavor: Flavor, own: OwnGroups, isolated: bool) -> CpuCounts:
    vcpu, pcpu = own.amount(VCPU), own.amount(PCPU)
    if vcpu and pcpu:
        needed = flavor.vcpus + isolated
        if vcpu + pcpu != needed:
            raise InvalidInput.of(
                f"flavor {flavor.name}, extra specs resources:VCPU and resources:PCPU",
                f"{vcpu} + {pcpu} CPUs",
                f"they must add up to {needed}, the CPUs of the server",
            )
        return CpuCounts(shared=vcpu, dedicated=pcpu - isolated, emulator=int(isolated))
    if pcpu:
        return CpuCounts(shared=0, dedicated=flavor.vcpus, emulator=int(isolated))
    return CpuCounts(shared=0 if vcpu == 0 else flavor.vcpus, dedicated=0)


def _refuse_own_amounts(flavor: Flavor, policy: str, own: OwnGroups) -> None:
    for name in (VCPU, PCPU):
        if own.amount(name):
            raise ConflictingExtraSpecs.of(
                f"flavor {flavor.name}, extra specs {POLICY} and resources:{name}",
                f"the policy {policy} and an amount of {own.amount(name)}",
                "say it in one of the two ways",
            )


def _masked(flavor: Flavor, image: Image | None) -> int:
    """Return how many vCPUs of a mixed server its mask makes dedicated."""
    masks = {
        flavor.spec(key): flavor.extra_specs[key]
        for key in (DEDICATED_MASK, REALTIME_MASK)
        if key in flavor.extra_specs
    }
    if image is not None and REALTIME_MASK not in flavor.extra_specs:
        where = f"image {image.name}, property {IMAGE_REALTIME_MASK}"
        if IMAGE_REALTIME_MASK in image.properties:
            masks[where] = image.properties[IMAGE_REALTIME_MASK]
    if len(masks) != 1:
        raise InvalidInput.of(
            f"flavor {flavor.name}, CPU policy mixed",
            f"{len(masks) or 'no'} masks say which vCPUs are dedicated",
            f"set either {DEDICATED_MASK} or {REALTIME_MASK}",
        )
    where, text = masks.popitem()
    every = CpuSet(range(min(flavor.vcpus, MAX_CPU + 1)))
    dedicated = CpuSet.parse(text, where=where, every=every)
    if not dedicated < every:
        raise InvalidInput.of(
            where,
            f"{text!r} of vCPUs {every}",
            "a mixed server needs at least one dedicated and one shared vCPU, of its own",
        )
    return len(dedicated)
