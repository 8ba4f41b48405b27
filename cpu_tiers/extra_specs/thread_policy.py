"""Whether dedicated vCPUs may, must or must not share a core with others.

Nova: ``hw:cpu_thread_policy``, ``hw_cpu_thread_policy``, or the trait
HW_CPU_HYPERTHREADING of a flavor's groups or an image: required says
``require``, forbidden says ``isolate``. Pure.
"""

from __future__ import annotations

from cpu_tiers.errors import ConflictingExtraSpecs
from cpu_tiers.extra_specs.choices import flavor_choice, image_choice, properties
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
    policy = policy_by_key(flavor, image)
    by_trait = _policy_by_trait(flavor, image, own)
    if policy and by_trait:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, {POLICY} or the image's {IMAGE_POLICY}, and {_TRAIT}",
            f"the policy {policy}, and the trait that means {by_trait}",
            "say it in one of the two ways",
        )
    return policy or by_trait


def policy_by_key(flavor: Flavor, image: Image | None) -> ThreadPolicy | None:
    """Return the policy that extra spec or property name, whatever a trait says.

    :raises InvalidInput: an unknown policy.
    :raises ConflictingExtraSpecs: flavor and image contradict each other.
    """
    wanted = flavor_choice(flavor, POLICY, _POLICIES)
    asked = image_choice(image, IMAGE_POLICY, _POLICIES)
    if image is not None and asked and wanted not in (None, "prefer", asked):
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name} and image {image.name}",
            f"the flavor has {POLICY}={wanted}, the image {IMAGE_POLICY}={asked}",
            "the image may not ask for another policy than the flavor, unless that is prefer",
        )
    return wanted or asked


def _policy_by_trait(flavor: Flavor, image: Image | None, own: OwnGroups) -> ThreadPolicy | None:
    required = _TRAIT in properties(image) or any(HYPERTHREADING in g.required for g in own.groups)
    forbidden = any(HYPERTHREADING in group.forbidden for group in own.groups)
    if required and forbidden:
        raise ConflictingExtraSpecs.of(
            f"flavor {flavor.name}, {_TRAIT} of its groups and its image",
            "required and forbidden",
            "they must agree",
        )
    if required:
        return "require"
    return "isolate" if forbidden else None
