"""Seams for CPU policies that Nova refuses or does not know.

All services read the CPU policy of a flavor through functions of
``nova.virt.hardware``. The seams translate a policy of cpu-tiers into extra specs
that Nova knows, and pass every flavor without such a policy on unchanged. Specs:
use-pcpu-vcpu-in-one-instance, libvirt-emulator-threads-policy; decisions D4
and D5.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
import logging
import re
from collections.abc import Callable
from typing import Any

from nova import exception, objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.cpu_masks import DEDICATED_MASK, REALTIME
from cpu_tiers.extra_specs.cpu_policy import POLICY
from cpu_tiers.extra_specs.emulator_threads import SPEC_KEY, emulator_threads_policy
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image
from cpu_tiers.nova.seams import Seam

LOG = logging.getLogger(__name__)

# Nova's hardware._get_vcpu_pcpu_resources reads amounts with these keys: without a suffix, or
# with a number as the suffix.
_CPUS = re.compile(r"resources(?:[1-9][0-9]*)?:(VCPU|PCPU)")
_POSITIVE = re.compile(r"0*[1-9][0-9]{0,9}")


def with_mask(flavor: objects.Flavor, image: objects.ImageMeta) -> objects.Flavor:
    """Return a flavor with ``hw:cpu_dedicated_mask`` in place of amounts of VCPU and PCPU.

    Nova's ``hardware.numa_get_constraints`` refuses every flavor with an amount of
    both classes. A flavor without both amounts is returned unchanged.

    :raises nova.exception.InvalidRequest: the extra specs of the flavor contradict
        each other or the image.
    """
    specs = extra_specs(flavor)
    amounts = {
        key: match[1]
        for key, value in specs.items()
        if (match := _CPUS.fullmatch(key)) and _POSITIVE.fullmatch(value)
    }
    if len(set(amounts.values())) < 2:
        return flavor
    try:
        cpus = guest_cpus(to_flavor(flavor), to_image(image))
    except InvalidInput as error:
        raise exception.InvalidRequest(str(error)) from error
    # Nova's numa_get_constraints refuses hw:cpu_realtime beside a mask. It does not need the
    # key: the libvirt driver calls get_realtime_cpu_constraint with the original flavor.
    kept = {key: v for key, v in specs.items() if key not in amounts and key != REALTIME}
    translated = flavor.obj_clone()  # the caller may save its flavor to the database
    translated.extra_specs = {**kept, POLICY: "mixed", DEDICATED_MASK: str(cpus.dedicated)}
    return translated


def _translate_amounts(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def numa_get_constraints(flavor: objects.Flavor, image_meta: objects.ImageMeta) -> Any:
        try:
            return original(with_mask(flavor, image_meta), image_meta)
        except exception.NovaException as error:
            if SPEC_KEY not in extra_specs(flavor):
                raise
            # Nova does not know the key, so it must not keep a server that exists from a move.
            constraints = original(with_mask(_without(flavor, SPEC_KEY), image_meta), image_meta)
            LOG.warning("Flavor %s: %s is ignored: %s", flavor.name, SPEC_KEY, error)
            return constraints

    return numa_get_constraints


def _without(flavor: objects.Flavor, key: str) -> objects.Flavor:
    other = flavor.obj_clone()  # the caller may save its flavor to the database
    other.extra_specs = {k: v for k, v in extra_specs(flavor).items() if k != key}
    return other


def _read_both_keys(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def get_emulator_thread_policy_constraint(flavor: objects.Flavor) -> str | None:
        policy: str | None
        if SPEC_KEY in extra_specs(flavor):
            try:
                policy = emulator_threads_policy(to_flavor(flavor))
            except InvalidInput as error:
                LOG.warning("Flavor %s: %s is ignored: %s", flavor.name, SPEC_KEY, error)
            else:
                return policy
        policy = original(flavor)
        return policy

    return get_emulator_thread_policy_constraint


SEAMS = (
    Seam(
        module="nova.virt.hardware",
        path="numa_get_constraints",
        parameters=("flavor", "image_meta"),
        wrap=_translate_amounts,
    ),
    Seam(
        module="nova.virt.hardware",
        path="get_emulator_thread_policy_constraint",
        parameters=("flavor",),
        wrap=_read_both_keys,
    ),
)
"""The seams for nova-api, nova-scheduler, nova-compute and commands: amounts of VCPU and PCPU on
the same flavor, and ``hw:cpu_emulator_threads``."""
