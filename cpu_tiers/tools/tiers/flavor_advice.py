"""Advice about a flavor: keys without effect, and the flavor with more NUMA nodes. Pure.

The names are facts about Nova 31 to 34: the validators in ``nova/api/validation/extra_specs``,
and the two keys for ``maxphysaddr``, which Nova reads and does not validate. From microversion
2.86 on, nova-api refuses an unknown key of these namespaces when the key is set. With an older
microversion, and in flavors that are older, an unknown key has no effect.
"""

import re
from collections.abc import Iterator, Sequence

from cpu_tiers.errors import Fault, InvalidInput
from cpu_tiers.extra_specs import shares
from cpu_tiers.extra_specs.cpu_policies import EMULATOR_SPEC_KEY
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.numa import CPUS, MEMORY, NODES, GuestNode, asks_for_nodes
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.similar_names import similar

_NOVAS_NAMES = {
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
    [f"{space}:{name}" for space, names in _NOVAS_NAMES.items() for name in names.split()]
    + [
        f"quota:{resource}_{name}"
        for resource in ("cpu", "memory", "disk_io", "vif")
        for name in _VMWARE_QUOTAS
    ]
)
"""The keys of Nova in namespaces with a fixed list of keys; ``N`` stands for a number."""

KEYS = NOVAS_KEYS | {shares.MULTIPLIER, EMULATOR_SPEC_KEY}
"""The keys of Nova and of cpu-tiers."""


def misspelt_keys(flavor: Flavor) -> Iterator[Fault]:
    """Yield a fault for each key that is unknown in a namespace of Nova.

    Keys without a namespace and keys of other namespaces belong to aggregates, to drivers or
    to other programs.
    """
    for key in flavor.extra_specs:
        number = re.search(r"(?<=\.)[0-9]+$", key)
        general = f"{key[: number.start()]}N" if number else key
        if key.partition(":")[0] not in _NOVAS_NAMES or ":" not in key or general in KEYS:
            continue
        nearest = similar(general, KEYS)
        if nearest and number:
            nearest = re.sub(r"N$", number[0], nearest)
        yield Fault(
            where=flavor.spec(key),
            given="neither Nova nor cpu-tiers knows this key",
            allowed=f"did you mean {nearest}?" if nearest else "remove the key",
        )


def idle_keys(flavor: Flavor, nodes: Sequence[GuestNode]) -> Iterator[Fault]:
    """Yield a fault for each key that describes a node which servers of a flavor do not have.

    Nova accepts and ignores these keys.

    :param nodes: the nodes of a server of the flavor; none if the server has no NUMA topology.
    """
    described = {f"{key}.{number}" for key in (CPUS, MEMORY) for number in range(len(nodes))}
    for key in flavor.extra_specs:
        if key not in described and re.fullmatch(rf"({CPUS}|{MEMORY})\.[0-9]+", key):
            given = f"no effect on a server of {len(nodes)} NUMA nodes, numbered from 0"
            yield Fault(flavor.spec(key), given, f"correct {NODES}, or remove the key")


def divided(flavor: Flavor, image: Image | None, most: int) -> Iterator[tuple[int, Flavor]]:
    """Yield the flavor with 2 and more equal nodes, if neither flavor nor image ask for nodes.

    :param most: the largest number of nodes.
    """
    for count in range(2, 1 if asks_for_nodes(flavor, image) else most + 1):
        if not flavor.vcpus % count and not flavor.memory_mb % count:
            specs = {**flavor.extra_specs, NODES: str(count)}
            yield count, flavor._replace(extra_specs=specs)


def sells_nodes(flavor: Flavor) -> bool:
    """Tell whether the shared vCPUs of a server with a tier stand on the CPUs of NUMA nodes.

    So they do with NUMA nodes, a page size, persistent memory, or dedicated vCPUs. A host that
    reports its shares as one amount then has no account of a node: by the host's account, a node
    may carry the shares of all its nodes. A flavor with faults sells nothing here.
    """
    try:
        cpus = guest_cpus(flavor)
        return bool(cpus.nodes and cpus.counts.shared) and shares.parse_shares(flavor) is not None
    except InvalidInput:
        return False


UNCOUNTED_NODES = (
    "a NUMA node of a host that reports its shares as one amount may carry more than its part, and"
    " a share then keeps less than it is sold as"
)
"""What happens to servers of a flavor for which :func:`sells_nodes` is true."""


def remedy_of_uncounted_nodes(*, has_driver: bool) -> str:
    """Return what to set on hosts that report their shares as one amount.

    :param has_driver: hosts may run the driver of cpu-tiers, which can report NUMA nodes.
    """
    apart = "keep servers of the flavor on hosts with a single NUMA node"
    if not has_driver:
        return apart
    return (
        "set [compute] enable_numa_reporting_to_placement = true on the hosts for such servers,"
        f" and [filter_scheduler] query_placement_for_numa = true for nova-scheduler; or {apart}"
    )
