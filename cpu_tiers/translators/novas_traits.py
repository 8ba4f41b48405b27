"""The traits of hosts that Nova itself requires for flavors, images and options of nova.conf.

Source: ``nova/scheduler/request_filter.py`` and ``ResourceRequest.from_request_spec`` of Nova 31
to 34. :data:`UNKNOWN` names the parts of Nova's request that flavor, image, ports and nova.conf
do not tell. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import is_trait

DISABLED = "COMPUTE_STATUS_DISABLED"
"""The trait of hosts whose nova-compute is disabled; each request of Nova forbids the trait."""

UNKNOWN = (
    "requests of device profiles, PCI aliases, persistent memory and memory encryption",
    "availability zones and aggregates of projects, unless --aggregate names them",
    "routed networks and ports that are managed remotely",
    "scheduler hints, a requested host, and Nova's filters",
    "the trait OWNER_NOVA, which Nova 34 requires once all hosts are upgraded",
)
"""The parts of Nova's request that are left out of :func:`novas_traits`."""

_PREFIXES: Mapping[str, str] = MappingProxyType(
    {
        "hw_cdrom_bus": "COMPUTE_STORAGE_BUS",
        "hw_disk_bus": "COMPUTE_STORAGE_BUS",
        "hw_video_model": "COMPUTE_GRAPHICS_MODEL",
        "hw_vif_model": "COMPUTE_NET_VIF_MODEL",
        "hw_architecture": "HW_ARCH",
        "hw_emulation_architecture": "COMPUTE_ARCH",
        "hw_viommu_model": "COMPUTE_VIOMMU",
    }
)
"""Image properties of ``[scheduler] image_metadata_prefilter``, with the prefix of the trait."""

_VALUES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("os:secure_boot", "required"): "COMPUTE_SECURITY_UEFI_SECURE_BOOT",
        ("hw:maxphysaddr_mode", "passthrough"): "COMPUTE_ADDRESS_SPACE_PASSTHROUGH",
        ("hw:maxphysaddr_mode", "emulate"): "COMPUTE_ADDRESS_SPACE_EMULATED",
        ("hw:virtio_packed_ring", "true"): "COMPUTE_NET_VIRTIO_PACKED",
        ("hw:ephemeral_encryption", "true"): "COMPUTE_EPHEMERAL_ENCRYPTION",
        ("hw:pci_numa_affinity_policy", "socket"): "COMPUTE_SOCKET_PCI_NUMA_AFFINITY",
        ("hw:sound_model", "virtio"): "COMPUTE_SOUND_MODEL_VIRTIO",
    }
)
"""Extra specs, and image properties with ``_`` for ``:``, with the trait that a value needs."""


def novas_traits(
    flavor: Flavor, image: Image | None, *, image_metadata_prefilter: bool = False
) -> frozenset[str]:
    """Return the traits that the root provider of a host must have.

    :param image_metadata_prefilter: the option of ``[scheduler]``.
    """
    properties = image.properties if image else {}
    required = {*_of_values(flavor.extra_specs, properties), *_of_tpm(flavor, properties)}
    if "COMPUTE_EPHEMERAL_ENCRYPTION" in required:
        encryption = _value("ephemeral_encryption_format", flavor, properties)
        required.add(f"COMPUTE_EPHEMERAL_ENCRYPTION_{encryption.upper()}")
    if properties.get("hw_firmware_type") == "uefi" and _is_true(
        properties.get("hw_firmware_stateless", "")
    ):
        required.add("COMPUTE_SECURITY_STATELESS_FIRMWARE")
    if flavor.extra_specs.get("accel:device_profile"):
        required.add("COMPUTE_ACCELERATORS")
    if image_metadata_prefilter:
        names = [
            f"{prefix}_{properties[key].replace('-', '_').upper()}"
            for key, prefix in _PREFIXES.items()
            if key in properties
        ]
        # As in Nova, a single name that is no trait switches the whole filter off.
        if all(map(is_trait, names)):
            required.update(names)
    return frozenset(filter(is_trait, required))


def _of_values(specs: Mapping[str, str], properties: Mapping[str, str]) -> Iterator[str]:
    for (key, value), trait in _VALUES.items():
        given = specs.get(key, properties.get(key.replace(":", "_"), ""))
        if given == value or (value == "true" and _is_true(given)):
            yield trait


def _of_tpm(flavor: Flavor, properties: Mapping[str, str]) -> Iterator[str]:
    version = _value("tpm_version", flavor, properties)
    model = _value("tpm_model", flavor, properties)
    if version:
        yield f"COMPUTE_SECURITY_TPM_{version.replace('.', '_')}"
        yield "COMPUTE_SECURITY_TPM_CRB" if model == "tpm-crb" else "COMPUTE_SECURITY_TPM_TIS"


def _value(name: str, flavor: Flavor, properties: Mapping[str, str]) -> str:
    return flavor.extra_specs.get(f"hw:{name}", properties.get(f"hw_{name}", ""))


def _is_true(text: str) -> bool:
    """Tell whether Nova reads a text as true: oslo.utils.strutils.bool_from_string."""
    return text.strip().lower() in ("1", "t", "true", "on", "y", "yes")
