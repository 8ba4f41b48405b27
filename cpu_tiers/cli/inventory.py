"""``cpu-tiers inventory show`` and ``sync``: what a host reports."""

import logging
import shutil
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cliff.lister import Lister
from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.cli.documents import read_bytes
from cpu_tiers.cli.formatting import FormattedValue
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.conf.read import inventory_options
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import Host, build_tree
from cpu_tiers.libvirt.capabilities import parse_capabilities
from cpu_tiers.libvirt.connection import read_capabilities
from cpu_tiers.model.host import HostTopology
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.placement.session import connect
from cpu_tiers.placement.steps import Change
from cpu_tiers.placement.sync import sync

LOG = logging.getLogger(__name__)

CHANGE_COLUMNS = ("provider", "what", "before", "after")


def add_capabilities_arguments(parser: ArgumentParser, *, required: bool = True) -> None:
    """Take the host's capabilities from a file or from libvirt."""
    source = parser.add_mutually_exclusive_group(required=required)
    source.add_argument("--capabilities", metavar="FILE", help="output of `virsh capabilities`")
    source.add_argument("--connect", metavar="URI", help="ask libvirt, such as qemu:///system")


def read_topology(parsed_args: Namespace) -> HostTopology:
    """Return the topology of the host that the arguments name."""
    if parsed_args.connect:
        return parse_capabilities(
            read_capabilities(parsed_args.connect), where=parsed_args.connect
        )
    return parse_capabilities(read_bytes(parsed_args.capabilities), where=parsed_args.capabilities)


class _InventoryCommand(NovaConfCommand, Lister):
    """What both commands take, and the tree that it makes."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        parser = super().get_parser(prog_name)
        add_capabilities_arguments(parser)
        parser.add_argument(
            "--hostname", required=True, help="name of the host's root resource provider"
        )
        parser.add_argument(
            "--disk-gb",
            type=int,
            metavar="N",
            help="local disk in GiB, 0 for none (default: the file system of nova.conf's "
            "instances_path on this machine)",
        )
        return parser

    def tree(self, parsed_args: Namespace, conf: cfg.ConfigOpts) -> ProviderTree:
        """Return the provider tree that the arguments and nova.conf describe."""
        host = Host(
            name=_hostname(parsed_args.hostname),
            topology=read_topology(parsed_args),
            disk_gb=_disk_gb(parsed_args, conf.instances_path),
        )
        return build_tree(host, inventory_options(conf), extensions.load(extensions.INVENTORY))


class InventoryShow(_InventoryCommand):
    """Show the provider tree of a host; nothing is written."""

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Build the tree, and lay it out."""
        tree = self.tree(parsed_args, self.nova_conf())
        columns = ("name", "parent", "inventories", "traits")
        return columns, [provider_row(provider) for provider in tree.providers]


class InventorySync(_InventoryCommand):
    """Write the provider tree of a host to Placement, and say what changed."""

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Build the tree, and write what differs."""
        conf = self.nova_conf()
        tree = self.tree(parsed_args, conf)
        with connect(conf, embedded=self.wants_embedded) as client:
            changes = sync(client, tree)
        if not changes:
            LOG.info("Placement already has it all: nothing was changed.")
        return CHANGE_COLUMNS, change_rows(changes)


def change_rows(changes: Iterable[Change]) -> list[tuple[object, ...]]:
    """Return a line for each thing that was changed."""
    return [(change.provider, change.what, change.before, change.after) for change in changes]


def _hostname(name: str) -> str:
    if name.strip() == name and name.isprintable() and 0 < len(name) <= 200:
        return name
    raise InvalidInput.of("--hostname", f"got {name!r}", "give a name of 1 to 200 characters")


def _disk_gb(parsed_args: Namespace, instances_path: str) -> int | None:
    """Return the disk as given, or as Nova on this machine would measure it."""
    given: int | None = parsed_args.disk_gb
    if given is not None:
        if given < 0:
            raise InvalidInput.of("--disk-gb", f"got {given}", "give 0 or more GiB")
        return given
    if parsed_args.connect and "://" in parsed_args.connect.replace(":///", ""):
        LOG.info("DISK_GB is left out: %s may be another machine.", parsed_args.connect)
        return None
    path = Path(instances_path)
    path = next(p for p in (path, *path.parents) if p.exists())
    disk_gb = shutil.disk_usage(path).total // 2**30
    LOG.info(
        "DISK_GB %d is the file system of %s on this machine; --disk-gb says otherwise.",
        disk_gb,
        path,
    )
    return disk_gb


def provider_row(provider: ResourceProvider) -> tuple[object, ...]:
    """Return name, parent, inventories and traits of a provider, laid out."""
    return (
        provider.name,
        provider.parent,
        FormattedValue({c: _inventory(i) for c, i in provider.inventories.items()}, _lines),
        FormattedValue(sorted(provider.traits), "\n".join),
    )


def _inventory(inventory: Inventory) -> dict[str, Any]:
    """Return the inventory as Placement's API has it."""
    fields = asdict(inventory)
    del fields["ratio_is_initial"]
    return fields


def _lines(inventories: Mapping[str, Mapping[str, Any]]) -> str:
    return "\n".join(
        f"{name}: {i['total']}, reserved {i['reserved']}, ratio {i['allocation_ratio']:g}, "
        f"at most {i['max_unit']} to one server"
        + (f", in steps of {i['step_size']}" if i["step_size"] > 1 else "")
        for name, i in inventories.items()
    )
