"""The CPU thread policy: whether dedicated vCPUs may, must or must not share a core.

As in Nova, the policy is ``hw:cpu_thread_policy`` of the flavor or
``hw_cpu_thread_policy`` of the image. The trait HW_CPU_HYPERTHREADING has the same
meaning: a required trait means ``require``, a forbidden trait means ``isolate``.
Pure.
"""

from __future__ import annotations

from cpu_tiers.errors import ConflictingExtraSpecs, FaultList
from cpu_tiers.extra_specs.choices import choices, properties
from cpu_tiers.extra_specs.groups import OwnGroups
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.policies import ThreadPolicy

HYPERTHREADING = "HW_CPU_HYPERTHREADING"
POLICY = "hw:cpu_thread_policy"
IMAGE_POLICY = "hw_cpu_thread_policy"

_POLICIES: tuple[ThreadPolicy, ...] = ("prefer", "isolate", "require")
_TRAIT = f"trait:{HYPERTHREADING}"


def thread_policy(flavor: Flavor, image: Image | None, own: OwnGroups) -> ThreadPolicy | None:
    """Return the thread policy.

    :param own: the flavor's own groups.
    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: flavor and image, or policy and trait,
        contradict each other.
    """
    faults = FaultList()
    policy = faults.read(policy_by_key, flavor, image)
    by_trait = faults.read(_policy_by_trait, flavor, image, own)
    faults.raise_if_any()
    if policy and by_trait:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, {POLICY} or the image's {IMAGE_POLICY}, and {_TRAIT}",
            f"the policy {policy}, and the trait that means {by_trait}",
            "remove either the policy or the trait",
        )
    return policy or by_trait


def policy_by_key(flavor: Flavor, image: Image | None) -> ThreadPolicy | None:
    """Return the policy of extra spec or image property, without regard to traits.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: flavor and image contradict each other.
    """
    of_flavor, of_image = choices(flavor, POLICY, image, IMAGE_POLICY, _POLICIES)
    if image is not None and of_image and of_flavor not in (None, "prefer", of_image):
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {POLICY}={of_flavor}, the image {IMAGE_POLICY}={of_image}",
            "the image may not ask for another policy than the flavor, unless that is prefer",
        )
    return of_flavor or of_image


def _policy_by_trait(flavor: Flavor, image: Image | None, own: OwnGroups) -> ThreadPolicy | None:
    # An image can only require a trait: the translator image_traits refuses other values.
    required = _TRAIT in properties(image) or any(HYPERTHREADING in g.required for g in own.groups)
    forbidden = any(HYPERTHREADING in group.forbidden for group in own.groups)
    if required and forbidden:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, {_TRAIT} of its groups and its image",
            "required and forbidden",
            "flavor and image must agree on the trait",
        )
    if required:
        return "require"
    return "isolate" if forbidden else None
