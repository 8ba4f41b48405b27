"""Seams for CPU policies that Nova refuses or does not know.

All services read the CPU policy of a flavor through functions of
``nova.virt.hardware``. The seams translate a policy of cpu-tiers into extra specs
that Nova knows, and pass every flavor without such a policy on unchanged. Specs:
use-pcpu-vcpu-in-one-instance, libvirt-emulator-threads-policy and, for NUMA nodes that
are described by their CPUs only, numa-topology-with-rps; decisions D4, D5 and D74.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import re
from collections.abc import Mapping
from typing import Any

from nova import exception, objects
from oslo_log import log as logging

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.cpu_masks import DEDICATED_MASK, REALTIME, REALTIME_MASK
from cpu_tiers.extra_specs.cpu_policies import EMULATOR_SPEC_KEY, POLICY, emulator_threads_policy
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.numa import MEMORY, has_cpus_only
from cpu_tiers.model.flavor import properties
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image, with_specs
from cpu_tiers.nova.seams import Function, seam

LOG = logging.getLogger(__name__)

# Nova's hardware._get_vcpu_pcpu_resources reads amounts with these keys: without a suffix, or
# with a number as the suffix.
_CPUS = re.compile(r"resources(?:[1-9][0-9]*)?:(VCPU|PCPU)")
_POSITIVE = re.compile(r"0*[1-9][0-9]{0,9}")


def equal_flavor(flavor: objects.Flavor, image: objects.ImageMeta) -> objects.Flavor:
    """Return a flavor that Nova accepts, for an equal guest.

    Nova's ``hardware.numa_get_constraints`` refuses three kinds of flavors of the specs:

    * amounts of both VCPU and PCPU; they become ``hw:cpu_dedicated_mask``,
    * the policy mixed with a real-time mask and without ``hw:cpu_realtime``; the mask becomes
      ``hw:cpu_dedicated_mask``, too,
    * ``hw:numa_cpus.N`` without ``hw:numa_mem.N``; the memory is divided evenly.

    All remaining flavors are returned unchanged.

    :raises nova.exception.InvalidRequest: a flavor with amounts contradicts itself or the image.
    """
    specs = extra_specs(flavor)
    amounts, ours = _amounts_of_both(specs), to_image(image)
    cpus_only = has_cpus_only(specs, properties(ours))
    has_mask = REALTIME_MASK in specs or image.properties.get("hw_cpu_realtime_mask")
    if not (amounts or cpus_only or (has_mask and DEDICATED_MASK not in specs)):
        return flavor
    try:
        guest = guest_cpus(to_flavor(flavor), ours)
    except InvalidInput as error:
        if not amounts:
            return flavor  # Nova decides, since it knows all keys of the flavor
        raise exception.InvalidRequest(str(error)) from error
    # Nova's numa_get_constraints refuses hw:cpu_realtime beside a mask. It does not need the
    # key: the libvirt driver calls get_realtime_cpu_constraint with the original flavor.
    dropped = {*amounts, REALTIME} if amounts else set()
    equal = {key: value for key, value in specs.items() if key not in dropped}
    if guest.policy == "mixed" and not (guest.realtime and not amounts):
        equal |= {POLICY: "mixed", DEDICATED_MASK: str(guest.dedicated)}
    if cpus_only:
        equal |= {f"{MEMORY}.{n}": str(node.memory_mb) for n, node in enumerate(guest.nodes)}
    return with_specs(flavor, equal)


def _amounts_of_both(specs: Mapping[str, str]) -> frozenset[str]:
    """Return the keys of amounts of VCPU and PCPU; none if only one of the classes has amounts."""
    amounts = {
        key: match[1]
        for key, value in specs.items()
        if (match := _CPUS.fullmatch(key)) and _POSITIVE.fullmatch(value)
    }
    return frozenset(amounts if len(set(amounts.values())) == 2 else ())


def _translate_flavor(
    original: Function, flavor: objects.Flavor, image_meta: objects.ImageMeta
) -> Any:
    try:
        return original(equal_flavor(flavor, image_meta), image_meta)
    except exception.NovaException as error:
        if EMULATOR_SPEC_KEY not in extra_specs(flavor):
            raise
        # Nova does not know the key, so it must not keep a server that exists from a move.
        known = {k: v for k, v in extra_specs(flavor).items() if k != EMULATOR_SPEC_KEY}
        constraints = original(equal_flavor(with_specs(flavor, known), image_meta), image_meta)
        LOG.warning("Flavor %s: %s is ignored: %s", flavor.name, EMULATOR_SPEC_KEY, error)
        return constraints


def _read_both_keys(original: Function, flavor: objects.Flavor) -> Any:
    if EMULATOR_SPEC_KEY in extra_specs(flavor):
        try:
            return emulator_threads_policy(to_flavor(flavor))
        except InvalidInput as error:
            LOG.warning("Flavor %s: %s is ignored: %s", flavor.name, EMULATOR_SPEC_KEY, error)
    return original(flavor)


def _claim_masked(
    original: Function, self: Any, flavor: objects.Flavor, image: objects.ImageMeta
) -> None:
    # Nova claims amounts of the flavor elsewhere.
    if not _amounts_of_both(extra_specs(flavor)):
        flavor = equal_flavor(flavor, image)
    original(self, flavor, image)


SEAMS = (
    seam("nova.virt.hardware:numa_get_constraints", "flavor, image_meta", _translate_flavor),
    seam("nova.virt.hardware:get_emulator_thread_policy_constraint", "flavor", _read_both_keys),
    seam(
        "nova.scheduler.utils:ResourceRequest._translate_pinning_policies",
        "self, flavor, image",
        _claim_masked,
    ),
)
"""The seams for nova-api, nova-scheduler, nova-compute and commands: flavors of the specs that
Nova refuses, and ``hw:cpu_emulator_threads``. No seam refuses a flavor that Nova accepts."""
