"""``inventory show -f provider-yaml``: a file by which stock nova-compute reports CPU shares.

Source: Nova, "Managing Resource Providers Using Config Files", ``nova.compute.provider_config``.
"""

import json
import logging

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import InventoryOptions
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import CUSTOM_SHARES, VCPU, VCPU_SHARES

LOG = logging.getLogger(__name__)

NAME = "provider-yaml"

_HEAD = """\
# The CPU shares of {host}, from nova.conf and the CPUs of the host.
# Made by "cpu-tiers inventory show -f provider-yaml"; changes by hand are lost.
# nova-compute reads the file only when it starts. The folder of the file is
# [compute] provider_config_location, by default /etc/nova/provider_config/.
meta:
  schema_version: '1.0'
providers:
"""
_ROOT = """\
  # The root provider of the nova-compute that reads the file.
  - identification:
      uuid: $COMPUTE_NODE
"""
_NODE = """\
  # A NUMA node: only the driver of cpu-tiers makes the provider.
  - identification:
      name: {name}
"""
_SHARES = """\
    inventories:
      additional:
        - {resource_class}:
            # {multiplier} shares for each of {cpus} shared CPUs ([libvirt] vcpu_share_multiplier).
            total: {shares.total}
            # The shares of [DEFAULT] reserved_host_cpus and [libvirt] emulator_overhead_percent.
            reserved: {shares.reserved}
            min_unit: 1
            # The most for one server: the total, or 10000, the largest weight of the kernel.
            max_unit: {shares.max_unit}
            step_size: 1
            # The ratio of VCPU: [DEFAULT] {ratio}.
            allocation_ratio: {shares.allocation_ratio!r}
"""


def provider_yaml(tree: ProviderTree, options: InventoryOptions) -> str:
    """Return a provider.yaml with the VCPU_SHARES of each provider, as Nova's loader accepts it.

    :param tree: the provider tree of a host that reports shares.
    :param options: the options that the tree was made with.
    :raises InvalidInput: the host has no shared CPUs.
    """
    root = tree.providers[0].name
    parts = []
    for provider in tree.providers:
        if VCPU_SHARES in provider.inventories:
            name = json.dumps(provider.name, ensure_ascii=False)
            parts.append(_ROOT if provider.parent is None else _NODE.format(name=name))
            parts.append(_shares(provider, options))
    if not parts:
        raise InvalidInput.of(
            f"host {root}",
            "no shared CPUs, so no shares",
            "set [compute] cpu_shared_set in the nova.conf of the host",
        )
    return _HEAD.format(host=root) + "".join(parts)


def _shares(provider: ResourceProvider, options: InventoryOptions) -> str:
    vcpu, shares = provider.inventories[VCPU], provider.inventories[VCPU_SHARES]
    return _SHARES.format(
        resource_class=CUSTOM_SHARES,
        multiplier=options.vcpu_share_multiplier,
        cpus=vcpu.total,
        shares=shares,
        ratio=f"{'initial_' if shares.ratio_is_initial else ''}cpu_allocation_ratio",
    )


def warn_of_options(options: InventoryOptions) -> None:
    """Log what of nova.conf would make the file wrong."""
    if options.cpu_allocation_ratio.is_initial:
        LOG.warning(
            "[DEFAULT] cpu_allocation_ratio is not set, so Nova keeps the ratio that VCPU has in"
            " Placement. The file has the initial ratio, %s. Set cpu_allocation_ratio if VCPU has"
            " another ratio.",
            options.cpu_allocation_ratio.value,
        )
    if options.report_vcpu_shares:
        LOG.warning(
            "[libvirt] report_vcpu_shares is true. nova-compute accepts shares either from the"
            " driver of cpu-tiers or from the file: remove the option before you restart"
            " nova-compute with the file."
        )
    if options.enable_numa_reporting_to_placement:
        LOG.warning(
            "[compute] enable_numa_reporting_to_placement is true, so the file has the shares of"
            " each NUMA node. Nova's own driver makes no providers of NUMA nodes: remove the"
            " option first on a host with Nova's own driver."
        )
