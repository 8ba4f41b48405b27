"""Seams that make nova-api refuse faulty flavors and images, with all faults in one answer.

A server that is going to be created or resized is refused for every fault. In a rebuild, the user
chooses an image and no flavor: nova-api refuses only faults that the new image brings. A move, a
revert of a resize and an unshelving pass none of these seams (decision D73).

nova-api answers 400 to ``InvalidRequest`` in all three operations.
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import functools
from collections.abc import Mapping
from typing import Any

from nova import exception, objects
from oslo_log import log as logging

from cpu_tiers import extensions
from cpu_tiers.conf import filter_scheduler
from cpu_tiers.errors import ExtensionError, Fault, InvalidInput
from cpu_tiers.extra_specs.cpu_policies import EMULATOR_SPEC_KEY, POLICY, cpu_policy
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.nova.convert import extra_specs, to_flavor, to_image
from cpu_tiers.nova.options import CONF
from cpu_tiers.nova.seams import Function, seam
from cpu_tiers.translators import BUILT_IN, ServerRequest, Translator
from cpu_tiers.translators.broken_rules import request_faults
from cpu_tiers.translators.contract import functions_that_request

LOG = logging.getLogger(__name__)


@functools.cache
def _translators() -> Mapping[str, Translator]:
    """Return all translators of cpu-tiers and of nova-scheduler, by name."""
    try:
        installed = extensions.load(extensions.TRANSLATORS).items()
    except ExtensionError as error:
        LOG.warning("nova-api checks flavors only with the translators of cpu-tiers: %s", error)
        return BUILT_IN
    called = {name: each for name, each in installed if not functions_that_request(each)}
    return {**BUILT_IN, **called}


def _request_faults(server: ServerRequest) -> tuple[Fault, ...]:
    """Return every fault of a server, also by translators of other distributions.

    If a translator of another distribution fails, nova-scheduler decides about the server.
    """
    translators = _translators()
    try:
        return request_faults(server, translators)
    except Exception as error:  # of a translator of another distribution
        LOG.exception("A translator fails for flavor %s: %r", server.flavor.name, error)
        return request_faults(server)


def faults_of(flavor: objects.Flavor, image: objects.ImageMeta | None) -> tuple[Fault, ...]:
    """Return the faults for which nova-api refuses a flavor and an image.

    These are all faults with ``[api] refuse_faulty_flavors``. The faults of the query for NUMA
    nodes are among them if nova-api has ``query_placement_for_numa``, too. Without the option,
    these are the faults of CPU policies that only cpu-tiers knows: Nova would ignore them.
    """
    try:
        ours, image_properties = to_flavor(flavor), to_image(image)
        if CONF.api.refuse_faulty_flavors:
            query_numa = bool(CONF[filter_scheduler.GROUP].query_placement_for_numa)
            return _request_faults(ServerRequest(ours, image_properties, query_numa=query_numa))
        if EMULATOR_SPEC_KEY in extra_specs(flavor):
            guest_cpus(ours, image_properties)
        # Nova's get_cpu_policy_constraint accepts flavor "mixed" with image "shared"; the table
        # of the spec does not (decision D4).
        if extra_specs(flavor).get(POLICY) == "mixed":
            cpu_policy(ours, image_properties)
    except InvalidInput as error:
        return error.faults
    return ()


def _to_meta(image: Mapping[str, Any]) -> objects.ImageMeta | None:
    """Return an image; ``None`` if Nova cannot read its properties, and answers 400 itself."""
    try:
        return objects.ImageMeta.from_dict(image)
    except ValueError:
        return None


def _refuse(faults: tuple[Fault, ...]) -> None:
    if faults:
        raise exception.InvalidRequest(str(InvalidInput(faults)))


def _refuse_boot(
    original: Function,
    self: object,
    context: object,
    flavor: objects.Flavor,
    boot_meta: Mapping[str, Any],
    *args: object,
    **kwargs: object,
) -> Any:
    _refuse(faults_of(flavor, _to_meta(boot_meta)))
    return original(self, context, flavor, boot_meta, *args, **kwargs)


def _refuse_resize(
    original: Function,
    image: Mapping[str, Any],
    flavor: objects.Flavor,
    validate_numa: bool = True,
    validate_pci: bool = False,
) -> None:
    # Boot and rebuild call the function, too, but only a resize has PCI devices validated.
    if validate_pci:
        _refuse(faults_of(flavor, _to_meta(image)))
    original(image, flavor, validate_numa=validate_numa, validate_pci=validate_pci)


def _refuse_rebuild(
    original: Function,
    instance: objects.Instance,
    image: Mapping[str, Any],
    flavor: objects.Flavor,
) -> None:
    """Nova calls the function only if the image changes."""
    before = faults_of(flavor, instance.image_meta)
    after = faults_of(flavor, _to_meta(image))
    _refuse(tuple(fault for fault in after if fault not in before))
    original(instance, image, flavor)


SEAMS = (
    seam(
        "nova.compute.api:API._validate_and_build_base_options",
        "self, context, flavor, boot_meta, image_href, image_id, kernel_id, ramdisk_id,"
        " display_name, display_description, hostname, key_name, key_data, security_groups,"
        " availability_zone, user_data, metadata, access_ip_v4, access_ip_v6,"
        " requested_networks, config_drive, auto_disk_config, reservation_id, max_count,"
        " supports_port_resource_request, min_comp_ver",
        _refuse_boot,
    ),
    seam(
        "nova.compute.api:API._validate_flavor_image_numa_pci",
        "image, flavor, validate_numa=True, validate_pci=False",
        _refuse_resize,
    ),
    seam(
        "nova.compute.api:API._validate_numa_rebuild", "instance, image, flavor", _refuse_rebuild
    ),
)
