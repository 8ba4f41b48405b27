"""Seams: what our specs say about CPUs and Nova refuses or does not know.

Every service asks ``nova.virt.hardware`` what a flavor means, so it is told
there, in its own words; what it knows already goes to it untouched. Specs:
use-pcpu-vcpu-in-one-instance, libvirt-emulator-threads-policy; decisions D4
and D5.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import re
from collections.abc import Callable
from typing import Any

from nova import exception, objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.cpu_masks import DEDICATED_MASK, REALTIME
from cpu_tiers.extra_specs.cpu_policy import POLICY, cpu_policy
from cpu_tiers.extra_specs.emulator_threads import SPEC_KEY, emulator_threads_policy
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image
from cpu_tiers.nova.seams import Seam

_CPUS = re.compile(r"resources(?:[1-9][0-9]*)?:(VCPU|PCPU)")
_SOME = re.compile(r"0*[1-9][0-9]{0,9}")


def in_novas_words(flavor: objects.Flavor, image: objects.ImageMeta) -> objects.Flavor:
    """Return a flavor with a mask in place of amounts of VCPU and PCPU.

    Nova refuses every flavor that has both amounts. Others are returned as
    they are. A real-time scheduler is left out: Nova allows none beside a mask,
    and does not ask this flavor for it.

    :raises nova.exception.InvalidRequest: the flavor makes no sense.
    """
    specs = extra_specs(flavor)
    amounts = {
        key: match[1]
        for key, value in specs.items()
        if (match := _CPUS.fullmatch(key)) and _SOME.fullmatch(value)
    }
    if len(set(amounts.values())) < 2:
        return flavor
    try:
        cpus = guest_cpus(to_flavor(flavor), to_image(image))
    except InvalidInput as error:
        raise exception.InvalidRequest(str(error)) from error
    others = {key: v for key, v in specs.items() if key not in amounts and key != REALTIME}
    said = flavor.obj_clone()
    said.extra_specs = {**others, POLICY: "mixed", DEDICATED_MASK: str(cpus.dedicated)}
    return said


def _deal_vcpus(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def numa_get_constraints(flavor: objects.Flavor, image_meta: objects.ImageMeta) -> Any:
        return original(in_novas_words(flavor, image_meta), image_meta)

    return numa_get_constraints


def _read_both_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_emulator_thread_policy_constraint(flavor: objects.Flavor) -> str | None:
        if SPEC_KEY not in extra_specs(flavor):
            released: str | None = original(flavor)
            return released
        try:
            return emulator_threads_policy(to_flavor(flavor))
        except InvalidInput as error:
            raise exception.InvalidEmulatorThreadsPolicy(str(error)) from error

    return get_emulator_thread_policy_constraint


def _refuse_conflicts(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def _validate_flavor_image_numa_pci(
        image: Any, flavor: objects.Flavor, validate_numa: bool = True, validate_pci: bool = False
    ) -> None:
        original(image, flavor, validate_numa=validate_numa, validate_pci=validate_pci)
        if extra_specs(flavor).get(POLICY) == "mixed":
            try:
                cpu_policy(to_flavor(flavor), to_image(objects.ImageMeta.from_dict(image)))
            except InvalidInput as error:
                raise exception.ImageCPUPinningForbidden(str(error)) from error

    return _validate_flavor_image_numa_pci


SEAMS = (
    Seam(
        module="nova.virt.hardware",
        path="numa_get_constraints",
        parameters=("flavor", "image_meta"),
        wrap=_deal_vcpus,
    ),
    Seam(
        module="nova.virt.hardware",
        path="get_emulator_thread_policy_constraint",
        parameters=("flavor",),
        wrap=_read_both_keys,
    ),
)
"""For nova-api, nova-scheduler and nova-compute alike: amounts of VCPU and PCPU on one
flavor, and ``hw:cpu_emulator_threads``."""

MATRIX = Seam(
    module="nova.compute.api",
    path="API._validate_flavor_image_numa_pci",
    parameters=("image", "flavor", "validate_numa", "validate_pci"),
    wrap=_refuse_conflicts,
)
"""For nova-api: flavor mixed with image shared, which Nova lets pass. Asked by boot, resize
and rebuild, so servers that exist can be moved."""
