"""``cpu-tiers inventory show`` and ``inventory sync``: the provider tree of a host.

``inventory show -f provider-yaml`` prints a file by which stock nova-compute reports CPU shares.
Source: Nova, "Managing Resource Providers Using Config Files", ``nova.compute.provider_config``.
"""

import json
import logging
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import Host, InventoryOptions, build_tree
from cpu_tiers.model.inventory import ProviderTree, ResourceProvider
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.placement.records import inventory_json
from cpu_tiers.placement.steps import Change
from cpu_tiers.tools.frame.formatting import (
    LIST_FORMATS,
    FormattedValue,
    ListCommand,
    TextFormatter,
)
from cpu_tiers.tools.frame.host_arguments import (
    add_capabilities_arguments,
    is_remote,
    read_topology,
)
from cpu_tiers.tools.frame.nova_conf_command import FOUND, WRITES, NovaConfCommand
from cpu_tiers.tools.frame.provider_files import MARK
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.terminal import ProgressLine
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.inventories import excesses_of
from cpu_tiers.tools.placement.sync import sync
from cpu_tiers.tools.writers.provider_place import check_place

LOG = logging.getLogger(__name__)

PROVIDER_YAML = "provider-yaml"

_HEAD = """\
# The CPU shares of {host}, from nova.conf and the CPUs of the host.
# {mark}; changes by hand are lost.
# While servers hold shares, nova-compute does not start without this file.
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


class _InventoryCommand(NovaConfCommand, ListCommand):
    """The arguments of both commands, and the described provider tree."""

    needs_nova_conf = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_capabilities_arguments(parser)
        parser.add_argument(
            "--hostname", required=True, help="name of the host's root resource provider"
        )
        parser.add_argument(
            "--disk-gb",
            type=int,
            metavar="N",
            help="local disk in GiB, or 0 (default: the size of the file system on this machine "
            "that contains instances_path of nova.conf)",
        )

    def tree(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> ProviderTree:
        """Return the provider tree that the arguments and nova.conf describe."""
        host = Host(
            name=_hostname(parsed_args.hostname),
            topology=read_topology(parsed_args),
            disk_gb=_disk_gb(parsed_args, conf.instances_path),
        )
        return build_tree(host, inventory_options(conf), extensions.load(extensions.INVENTORY))


class InventoryShow(_InventoryCommand):
    """Show the provider tree of a host.

    Nothing is written but, with `-f provider-yaml`, the file of `--file`. The exit status is 3 if
    another file of Nova has the shares already, so that no file is needed.
    """

    formats = LIST_FORMATS | {"provider-yaml": TextFormatter}

    def add_arguments(self, parser: ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--file",
            metavar="FILE",
            help="with -f provider-yaml: write this file, as a whole or not at all, instead of "
            "standard output",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        columns = ("name", "parent", "inventories", "traits")
        if parsed_args.formatter == PROVIDER_YAML:
            text = self._provider_yaml(parsed_args, conf)
            parsed_args.print_text = lambda console: console.file.write(text)
            return columns, []
        if parsed_args.file:
            self._parser.error("--file needs -f provider-yaml")
        tree = self.tree(parsed_args, conf)
        return columns, [provider_row(provider) for provider in tree.providers]

    def _provider_yaml(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> str:
        """Return the text to print: none if the file was written, or if no file is needed."""
        host = Host(name=_hostname(parsed_args.hostname), topology=read_topology(parsed_args))
        options = inventory_options(conf)
        warn_of_options(options)
        # nova.conf of a host with Nova's own driver has no report_vcpu_shares.
        options = replace(options, report_vcpu_shares=True)
        tree = build_tree(host, options)
        text = provider_yaml(tree, options)
        if file := check_place(conf, tree, parsed_args.file):
            self.status = FOUND
            LOG.info("%s has the shares of %s already: no file is needed.", file, host.name)
            return ""
        if not parsed_args.file:
            return text
        write_output(parsed_args.file, text.encode(), mode=0o644)
        return ""


class InventorySync(_InventoryCommand):
    """Write the provider tree of a host to Placement, and list the changes."""

    snapshot_refusal = WRITES

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        conf = self.nova_conf()
        tree = self.tree(parsed_args, conf)
        with ProgressLine("asking Placement"), self.placement(conf) as client:
            changes = sync(client, tree)
            warn_of_excesses(client, changes)
        return list_changes(changes)


def list_changes(changes: Iterable[Change]) -> tuple[tuple[str, ...], Iterable[object]]:
    """Return the columns, and a row for each change; or log their absence."""
    rows = [(change.provider, change.what, change.before, change.after) for change in changes]
    if not rows:
        LOG.info("Placement is up to date: nothing was changed.")
    return ("provider", "what", "before", "after"), rows


def warn_of_excesses(client: PlacementClient, changes: Iterable[Change]) -> None:
    """Say of which changed inventories servers have more than the capacity."""
    excesses = list(excesses_of(client, {c.provider for c in changes if c.is_of_amounts}))
    if excesses:
        LOG.warning(
            "More is allocated than the capacity: %s. The servers keep it, and Placement allocates"
            " no more until enough is free.",
            ", ".join(map(str, excesses)),
        )


def _hostname(name: str) -> str:
    if name.strip() == name and name.isprintable() and 0 < len(name) <= 200:
        return name
    raise InvalidInput.of("--hostname", f"got {name!r}", "give a name of 1 to 200 characters")


def _disk_gb(parsed_args: Namespace, instances_path: str) -> int | None:
    """Return the disk size in the arguments, or of the file system that Nova would use here."""
    given: int | None = parsed_args.disk_gb
    if given is not None:
        if given < 0:
            raise InvalidInput.of("--disk-gb", f"got {given}", "give 0 or more GiB")
        return given
    if parsed_args.connect and is_remote(parsed_args.connect):
        LOG.info(
            "DISK_GB is left out, because %s may be another machine; use --disk-gb to add it.",
            parsed_args.connect,
        )
        return None
    path = Path(instances_path)
    # instances_path need not exist on this machine; then the nearest existing parent counts.
    path = next(p for p in (path, *path.parents) if p.exists())
    disk_gb = shutil.disk_usage(path).total // 2**30
    LOG.info(
        "DISK_GB is %d, the size of the file system of %s on this machine; use --disk-gb to"
        " change it.",
        disk_gb,
        path,
    )
    return disk_gb


def provider_row(provider: ResourceProvider) -> tuple[object, ...]:
    """Return a row with the name, parent, inventories and traits of a provider."""
    inventories = {name: inventory_json(each) for name, each in provider.inventories.items()}
    traits = FormattedValue(sorted(provider.traits), "\n".join)
    return provider.name, provider.parent, FormattedValue(inventories, _lines), traits


def _lines(inventories: Mapping[str, Mapping[str, Any]]) -> str:
    return "\n".join(
        f"{name}: {i['total']}, reserved {i['reserved']}, ratio {i['allocation_ratio']:g}, "
        f"at most {i['max_unit']} to one server"
        + (f", in steps of {i['step_size']}" if i["step_size"] > 1 else "")
        for name, i in inventories.items()
    )


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
            shares = provider.inventories[VCPU_SHARES]
            text = _SHARES.format(
                resource_class=VCPU_SHARES,
                multiplier=options.vcpu_share_multiplier,
                cpus=provider.inventories[VCPU].total,
                shares=shares,
                ratio=f"{'initial_' if shares.ratio_is_initial else ''}cpu_allocation_ratio",
            )
            parts.append(text)
    if not parts:
        raise InvalidInput.of(
            f"host {root}",
            "no shared CPUs, so no shares",
            "set [compute] cpu_shared_set in the nova.conf of the host",
        )
    return _HEAD.format(host=root, mark=MARK) + "".join(parts)


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
