"""Nova's flavors, images, request groups and candidates as values of :mod:`cpu_tiers.model`."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from collections.abc import Mapping
from typing import Any

from nova import objects

from cpu_tiers.extra_specs.cpu_policies import EMULATOR_SPEC_KEY
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.request import RequestGroup
from cpu_tiers.nova import options

# The properties of Nova's image that are plain values and that extra_specs/ reads. The
# properties of single NUMA nodes are lists in Nova and keys with a number in Image.
_PROPERTIES = (
    "hw_cpu_policy",
    "hw_cpu_realtime_mask",
    "hw_cpu_thread_policy",
    "hw_mem_page_size",
    "hw_numa_nodes",
)


def field(value: objects.base.NovaObject, name: str) -> Any:
    """Return a field of an object of Nova; ``None`` if the field is not set."""
    return getattr(value, name) if name in value else None


def extra_specs(flavor: objects.Flavor) -> Mapping[str, str]:
    """Return the extra specs of Nova's flavor; an empty mapping if Nova did not load them."""
    specs: Mapping[str, str] = flavor.extra_specs if "extra_specs" in flavor else {}
    return specs


def name_of(flavor: objects.Flavor) -> str:
    """Return the name of Nova's flavor for messages; nova-scheduler reads no such name."""
    name: str = flavor.name if "name" in flavor else "(unnamed)"
    return name


def with_specs(flavor: objects.Flavor, specs: dict[str, str]) -> objects.Flavor:
    """Return a copy of Nova's flavor with other extra specs: its owner may save the flavor."""
    changed = flavor.obj_clone()
    changed.extra_specs = specs
    return changed


def to_flavor(flavor: objects.Flavor) -> Flavor:
    """Return Nova's flavor as a :class:`~cpu_tiers.model.flavor.Flavor`.

    Without ``[compute] extend_cpu_policies``, Nova's services ignore ``hw:cpu_emulator_threads``,
    and the result does not have the extra spec.

    :raises InvalidInput: a size is out of range.
    """
    specs = extra_specs(flavor)
    if not options.extends_cpu_policies():
        specs = {key: value for key, value in specs.items() if key != EMULATOR_SPEC_KEY}
    return Flavor(
        name=name_of(flavor),
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        root_gb=flavor.root_gb,
        ephemeral_gb=flavor.ephemeral_gb,
        swap_mb=flavor.swap,
        extra_specs=specs,
    )


def to_image(image: objects.ImageMeta | None) -> Image | None:
    """Return the properties of Nova's image about CPUs, NUMA nodes, page sizes and traits.

    :returns: ``None`` for a server without an image, such as boot from volume.
    """
    if image is None or "properties" not in image:
        return None
    properties = image.properties
    texts = {
        name: str(value) for name in _PROPERTIES if (value := properties.get(name)) is not None
    }
    for node, cpus in enumerate(properties.get("hw_numa_cpus", [])):
        texts[f"hw_numa_cpus.{node}"] = str(CpuSet(cpus))
    for node, memory_mb in enumerate(properties.get("hw_numa_mem", [])):
        texts[f"hw_numa_mem.{node}"] = str(memory_mb)
    traits = {f"trait:{name}": "required" for name in properties.get("traits_required", [])}
    return Image(name=field(image, "name") or "(unnamed)", properties={**texts, **traits})


def to_group(group: objects.RequestGroup, suffix: str | None) -> RequestGroup:
    """Return Nova's group of a request that has no alternative traits."""
    return RequestGroup(
        suffix=suffix or "",
        resources=group.resources,
        required=frozenset(group.required_traits),
        forbidden=frozenset(group.forbidden_traits),
    )


def add_group(request: Any, added: RequestGroup) -> objects.RequestGroup:
    """Merge a group into the group of Nova's request with the same suffix; return Nova's group."""
    # A copy, since the groups of ports and devices belong to the request spec, which is saved.
    group = request.get_request_group(added.suffix or None).obj_clone()
    request._rg_by_id[added.suffix or None] = group
    group.resources = {**group.resources, **added.resources}
    group.required_traits = group.required_traits | added.required
    group.forbidden_traits = group.forbidden_traits | added.forbidden
    return group


def amounts_of(candidate: Mapping[str, Any]) -> Mapping[str, Mapping[str, int]]:
    """Return the amounts of a candidate by provider uuid and resource class."""
    allocations = candidate["allocations"]
    return {uuid: allocation["resources"] for uuid, allocation in allocations.items()}
