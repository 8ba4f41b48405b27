"""Finds misspelt keys: extra specs that neither Nova nor cpu-tiers knows.

The names are facts about Nova 31 to 34: the validators in ``nova/api/validation/extra_specs``,
and the two keys for ``maxphysaddr``, which Nova reads and does not validate. From microversion
2.86 on, nova-api refuses an unknown key of these namespaces when the key is set. With an older
microversion, and in flavors that are older, an unknown key has no effect. Pure.
"""

import re
from collections.abc import Iterator

from cpu_tiers.errors import Fault
from cpu_tiers.extra_specs import shares
from cpu_tiers.extra_specs.emulator_threads import SPEC_KEY
from cpu_tiers.extra_specs.similar_names import similar
from cpu_tiers.model.flavor import Flavor

_NAMES = {
    "accel": "device_profile",
    "hw": "boot_menu cpu_cores cpu_dedicated_mask cpu_max_cores cpu_max_sockets cpu_max_threads"
    " cpu_policy cpu_realtime cpu_realtime_mask cpu_sockets cpu_thread_policy cpu_threads"
    " emulator_threads_policy ephemeral_encryption ephemeral_encryption_format"
    " hide_hypervisor_id locked_memory maxphysaddr_bits maxphysaddr_mode mem_encryption"
    " mem_encryption_model mem_page_size numa_cpus.N numa_mem.N numa_nodes"
    " pci_numa_affinity_policy pmem pmu redirected_usb_ports serial_port_count sound_model"
    " tpm_model tpm_secret_security tpm_version usb_model vif_multiqueue_enabled viommu_model"
    " virtio_packed_ring watchdog_action",
    "hw_rng": "allowed rate_bytes rate_period",
    "hw_video": "ram_max_mb",
    "os": "secure_boot",
    "pci_passthrough": "alias",
    "quota": "cpu_period cpu_quota cpu_shares disk_read_bytes_sec disk_read_iops_sec"
    " disk_total_bytes_sec disk_total_iops_sec disk_write_bytes_sec disk_write_iops_sec"
    " vif_inbound_average vif_inbound_burst vif_inbound_peak vif_outbound_average"
    " vif_outbound_burst vif_outbound_peak",
    "vmware": "hw_version storage_policy",
}
_VMWARE_QUOTAS = ("limit", "reservation", "shares_level", "shares_share")

NOVAS_KEYS = frozenset(
    [f"{space}:{name}" for space, names in _NAMES.items() for name in names.split()]
    + [
        f"quota:{resource}_{name}"
        for resource in ("cpu", "memory", "disk_io", "vif")
        for name in _VMWARE_QUOTAS
    ]
)
"""The keys of Nova in namespaces with a fixed list of keys; ``N`` stands for a number."""

KEYS = NOVAS_KEYS | {shares.MULTIPLIER, SPEC_KEY}
"""The keys of Nova and of cpu-tiers."""


def misspelt_keys(flavor: Flavor) -> Iterator[Fault]:
    """Yield a fault for each key that is unknown in a namespace of Nova.

    Keys without a namespace and keys of other namespaces belong to aggregates, to drivers or
    to other programs.
    """
    for key in flavor.extra_specs:
        number = re.search(r"(?<=\.)[0-9]+$", key)
        general = f"{key[: number.start()]}N" if number else key
        if key.partition(":")[0] not in _NAMES or ":" not in key or general in KEYS:
            continue
        nearest = similar(general, KEYS)
        if nearest and number:
            nearest = re.sub(r"N$", number[0], nearest)
        yield Fault(
            where=flavor.spec(key),
            given="neither Nova nor cpu-tiers knows this key",
            allowed=f"did you mean {nearest}?" if nearest else "remove the key",
        )
