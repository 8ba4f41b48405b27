"""The policies for the CPUs of a server: dedicated and shared vCPUs, and sibling threads.

* The CPU policy: dedicated, shared or mixed vCPUs. Spec: use-pcpu-vcpu-in-one-instance,
  "Instance CPU policy matrix" and "Create mixed instance via resources:PCPU and resources:VCPU";
  decision D4.
* The thread policy: whether dedicated vCPUs may, must or must not share a core. The trait
  HW_CPU_HYPERTHREADING has the same meaning: a required trait means ``require``, a forbidden trait
  means ``isolate``.
* The emulator threads policy: where the hypervisor's own threads of a guest run. Both the key of
  the spec and the key that Nova released are read. Spec: libvirt-emulator-threads-policy; decision
  D5.

As in Nova, an image property has the name of the extra spec with ``_``. The functions raise
InvalidInput for an unknown policy, and ConflictingExtraSpecs if flavor and image, two keys, or a
policy and a trait contradict each other. Pure.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList, InvalidInput
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.flavor import (
    CpuPolicy,
    EmulatorThreadsPolicy,
    Flavor,
    Image,
    ThreadPolicy,
    properties,
)
from cpu_tiers.model.names import PCPU, VCPU

_Word = TypeVar("_Word", bound=str)

POLICY = "hw:cpu_policy"
IMAGE_POLICY = "hw_cpu_policy"

_POLICIES: tuple[CpuPolicy, ...] = ("dedicated", "mixed", "shared")
# Flavor and image: the combinations that the spec's matrix refuses. Nova's
# get_cpu_policy_constraint lets mixed and shared pass, see docs/admin/cpus.rst.
_CONFLICTS = {
    ("shared", "dedicated"),
    ("mixed", "dedicated"),
    ("shared", "mixed"),
    ("mixed", "shared"),
}
_CLASSES = {"dedicated": (PCPU,), "mixed": (VCPU, PCPU), "shared": (VCPU,)}

HYPERTHREADING = "HW_CPU_HYPERTHREADING"
THREAD_POLICY = "hw:cpu_thread_policy"
IMAGE_THREAD_POLICY = "hw_cpu_thread_policy"

_THREAD_POLICIES: tuple[ThreadPolicy, ...] = ("prefer", "isolate", "require")
_HYPERTHREADING_TRAIT = f"trait:{HYPERTHREADING}"

EMULATOR_RELEASED_KEY = "hw:emulator_threads_policy"
EMULATOR_SPEC_KEY = "hw:cpu_emulator_threads"
EMULATOR_KEYS = (EMULATOR_RELEASED_KEY, EMULATOR_SPEC_KEY)
EMULATOR_POLICIES: tuple[EmulatorThreadsPolicy, ...] = ("share", "isolate")


class RequestedPolicy(NamedTuple):
    """The CPU policy that a flavor and an image request.

    :param policy: ``None`` if neither of them requests a policy.
    :param shared: the number of shared vCPUs of a mixed server, if the flavor has
        amounts of VCPU and PCPU; ``None`` if a mask names the dedicated vCPUs.
    """

    policy: CpuPolicy | None
    shared: int | None = None


def cpu_policy(flavor: Flavor, image: Image | None) -> CpuPolicy | None:
    """Return the policy of the spec's matrix; ``None`` if flavor and image have none."""
    flavor_value, image_value = choices(flavor, POLICY, image, IMAGE_POLICY, _POLICIES)
    if image is not None and (flavor_value, image_value) in _CONFLICTS:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {POLICY}={flavor_value}, the image {IMAGE_POLICY}={image_value}",
            "the image may not ask for another policy than the flavor",
        )
    return flavor_value or image_value


def requested_policy(
    flavor: Flavor, image: Image | None, own_groups: OwnGroups, emulator_cpus: int | None
) -> RequestedPolicy | None:
    """Return the policy of flavor or image, else the policy that VCPU and PCPU amounts imply.

    :param own_groups: the flavor's own groups.
    :param emulator_cpus: the PCPUs for emulator threads, beside the vCPUs; ``None`` if their
        policy has a fault.
    :returns: ``None`` if ``own`` lacks an amount of VCPU or PCPU, because the amount has a fault.
    :raises InvalidInput: the policy or the amounts do not fit the flavor.
    """
    is_set = POLICY in flavor.extra_specs or IMAGE_POLICY in properties(image)
    if is_set and (policy := cpu_policy(flavor, image)) is not None:
        _refuse_own_amounts(flavor, policy, own_groups)
        return RequestedPolicy(policy)
    if lacks_amounts(flavor, own_groups):
        return None
    vcpu, pcpu = own_groups.amount(VCPU), own_groups.amount(PCPU)
    if pcpu:
        if emulator_cpus is not None:
            _check_sum(flavor, vcpu or 0, pcpu, emulator_cpus)
        return RequestedPolicy("mixed", vcpu) if vcpu else RequestedPolicy("dedicated")
    return RequestedPolicy("shared") if vcpu else RequestedPolicy(None)


def lacks_amounts(flavor: Flavor, own_groups: OwnGroups) -> bool:
    """Return whether an extra spec for an amount of VCPU or PCPU was not readable."""
    read = sum(name in group.resources for group in own_groups.groups for name in (VCPU, PCPU))
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


def _refuse_own_amounts(flavor: Flavor, policy: CpuPolicy, own_groups: OwnGroups) -> None:
    """Refuse amounts of VCPU and PCPU beside a policy, which says the same in another way.

    An amount of 0 is allowed for a class that the policy does not request.
    """
    faults = FaultList()
    for name in (VCPU, PCPU):
        amount = own_groups.amount(name)
        if amount or (amount == 0 and name in _CLASSES[policy]):
            with faults:
                raise ConflictingExtraSpecs.of(
                    f"flavor {flavor.name}, extra specs {POLICY} and resources:{name}",
                    f"the policy {policy} and an amount of {amount}",
                    "remove either the policy or the amount",
                )
    faults.raise_if_any()


def thread_policy(
    flavor: Flavor, image: Image | None, own_groups: OwnGroups
) -> ThreadPolicy | None:
    """Return the thread policy of extra spec or image property, or of a trait.

    :param own_groups: the flavor's own groups.
    """
    if not sets_thread_policy(flavor, image):
        return _thread_policy_by_trait(flavor, image, own_groups)
    faults = FaultList()
    policy = faults.read(thread_policy_by_key, flavor, image)
    by_trait = faults.read(_thread_policy_by_trait, flavor, image, own_groups)
    faults.raise_if_any()
    if policy and by_trait:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, {THREAD_POLICY} or the image's {IMAGE_THREAD_POLICY}, and"
            f" {_HYPERTHREADING_TRAIT}",
            f"the policy {policy}, and the trait that means {by_trait}",
            "remove either the policy or the trait",
        )
    return policy or by_trait


def sets_thread_policy(flavor: Flavor, image: Image | None) -> bool:
    """Return whether flavor or image set a thread policy, valid or not."""
    return THREAD_POLICY in flavor.extra_specs or IMAGE_THREAD_POLICY in properties(image)


def thread_policy_by_key(flavor: Flavor, image: Image | None) -> ThreadPolicy | None:
    """Return the policy of extra spec or image property, without regard to traits."""
    flavor_value, image_value = choices(
        flavor, THREAD_POLICY, image, IMAGE_THREAD_POLICY, _THREAD_POLICIES
    )
    if image is not None and image_value and flavor_value not in (None, "prefer", image_value):
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {THREAD_POLICY}={flavor_value},"
            f" the image {IMAGE_THREAD_POLICY}={image_value}",
            "the image may not ask for another policy than the flavor, unless that is prefer",
        )
    return flavor_value or image_value


def _thread_policy_by_trait(
    flavor: Flavor, image: Image | None, own_groups: OwnGroups
) -> ThreadPolicy | None:
    # An image can only require a trait: the translator image_traits refuses other values.
    required = _HYPERTHREADING_TRAIT in properties(image) or any(
        HYPERTHREADING in g.required for g in own_groups.groups
    )
    forbidden = any(HYPERTHREADING in group.forbidden for group in own_groups.groups)
    if required and forbidden:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, {_HYPERTHREADING_TRAIT} of its groups and its image",
            "required and forbidden",
            "flavor and image must agree on the trait",
        )
    if required:
        return "require"
    return "isolate" if forbidden else None


def emulator_threads_policy(flavor: Flavor) -> EmulatorThreadsPolicy | None:
    """Return the policy, or ``None`` if neither key is set."""
    faults = FaultList()
    specs = flavor.extra_specs
    released = faults.read(_choice, flavor, specs, EMULATOR_RELEASED_KEY, EMULATOR_POLICIES)
    spec = faults.read(_choice, flavor, specs, EMULATOR_SPEC_KEY, EMULATOR_POLICIES)
    faults.raise_if_any()
    # Both keys with equal values are accepted: they do not contradict each other.
    if released and spec and released != spec:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, extra specs {' and '.join(EMULATOR_KEYS)}",
            f"{released!r} and {spec!r}",
            "both keys set the same policy: remove one of them",
        )
    return released or spec


def choices(
    flavor: Flavor, key: str, image: Image | None, image_key: str, words: tuple[_Word, ...]
) -> tuple[_Word | None, _Word | None]:
    """Return the values of an extra spec and of the image property with the same meaning.

    :raises InvalidInput: a value is not in ``words``; with the faults of both values.
    """
    faults = FaultList()
    flavor_value = faults.read(_choice, flavor, flavor.extra_specs, key, words)
    image_value = image and faults.read(_choice, image, image.properties, image_key, words)
    faults.raise_if_any()
    return flavor_value, image_value


def _choice(
    source: Flavor | Image, texts: Mapping[str, str], key: str, words: tuple[_Word, ...]
) -> _Word | None:
    """Return a value of the flavor or the image, which is one of some words, or ``None``."""
    text = texts.get(key)
    for word in words:  # the word of the list has the Literal type that the caller declares
        if word == text:
            return word
    if text is None:
        return None
    raise InvalidInput.of(source.spec(key), f"got {text!r}", f"give one of {', '.join(words)}")
