"""``cpu-tiers flavor check`` and ``flavor show``: the faults and the CPUs of flavors."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from cliff.lister import Lister
from oslo_config import cfg

from cpu_tiers import extensions
from cpu_tiers.cli.documents import read_flavor
from cpu_tiers.cli.formatting import FormattedValue, ShowCommand
from cpu_tiers.cli.nova_conf_command import NovaConfCommand
from cpu_tiers.cli.request import (
    add_numa_argument,
    add_server_arguments,
    read_server,
    requests_numa_nodes,
)
from cpu_tiers.errors import Fault, FaultList
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.extra_specs.page_size import absent_pages
from cpu_tiers.extra_specs.server_faults import server_faults
from cpu_tiers.guest.topology import dedicated_cpus, guest_topology, host_cpu_overhead
from cpu_tiers.model.guest import GuestCell
from cpu_tiers.model.numa import page_size_of
from cpu_tiers.placement.session import connect
from cpu_tiers.translators import ServerRequest, Translator, translate

LOG = logging.getLogger(__name__)


class FlavorCheck(NovaConfCommand, Lister):
    """List every fault of each flavor; the exit status is 1 if there are faults."""

    has_faults = False

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the flavors and the checks."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "flavor",
            nargs="+",
            metavar="FLAVOR.json",
            help="output of `openstack flavor show -f json`",
        )
        add_numa_argument(parser)
        parser.add_argument(
            "--hosts",
            action="store_true",
            help="also check in Placement that a host reports the requested page size",
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Check each flavor and list its faults."""
        conf = self.nova_conf()
        translators = extensions.load(extensions.TRANSLATORS)
        traits = self._traits(conf) if parsed_args.hosts else frozenset()
        rows = [
            (path, *fault)
            for path in parsed_args.flavor
            for fault in _faults(path, parsed_args, conf.filter_scheduler, translators, traits)
        ]
        self.has_faults = bool(rows)
        LOG.info("flavors: %d, faults: %d", len(parsed_args.flavor), len(rows))
        return ("file", "where", "given", "allowed"), rows

    def _traits(self, conf: cfg.ConfigOpts) -> frozenset[str]:
        with connect(conf, embedded=self.wants_embedded) as client:
            traits = client.traits_in_use()
        if page_size_of(traits) is None:
            LOG.info("No host reports its page sizes, so page sizes are not checked.")
        return traits

    def run(self, parsed_args: Namespace) -> int:
        """Return the exit status: 1 also if there are faults."""
        status: int = super().run(parsed_args)
        return status or int(self.has_faults)


def _faults(
    path: str,
    parsed_args: Namespace,
    options: cfg.ConfigOpts,
    translators: Mapping[str, Translator],
    traits: frozenset[str],
) -> Iterable[Fault]:
    """Return the faults of a flavor and of the query for its servers.

    :param options: the section ``[filter_scheduler]``.
    :param traits: the traits of all hosts; empty to check no page size.
    """
    faults = FaultList()
    with faults:
        server = ServerRequest(
            flavor=read_flavor(path), query_vcpu_shares=options.query_placement_for_vcpu_shares
        )
        for fault in server_faults(server.flavor):
            faults.add(*fault)
        with faults:
            query_numa = requests_numa_nodes(parsed_args, options, server)
            translate(server._replace(query_numa=query_numa), translators)
        if absent := absent_pages(server.flavor, None, traits):
            faults.add(*absent)
    return dict.fromkeys(faults.faults)  # translate() finds the faults of server_faults(), too


class FlavorShow(ShowCommand):
    """Show the dedicated, shared and real-time vCPUs and the NUMA nodes of a server."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Add the arguments for the flavor and the image."""
        parser = super().get_parser(prog_name)
        add_server_arguments(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        """Work out the CPUs and the NUMA nodes, and show them."""
        server = read_server(parsed_args)
        guest = guest_cpus(server.flavor, server.image)
        topology = guest_topology(guest)
        shown = {
            "flavor": server.flavor.name,
            "vcpus": server.flavor.vcpus,
            "cpu_policy": guest.policy,
            "cpu_thread_policy": guest.thread_policy,
            "emulator_threads_policy": guest.emulator_threads,
            "host_cpu_overhead": host_cpu_overhead(topology),
            "page_size": guest.page_size,
            "dedicated_cpus": dedicated_cpus(topology),
            "realtime_cpus": str(guest.realtime),
            "cells": FormattedValue(
                [_cell(cell) for cell in topology.cells] if topology else [], _lines
            ),
        }
        return tuple(shown), tuple(shown.values())


def _cell(cell: GuestCell) -> dict[str, Any]:
    return {
        "id": cell.id,
        "cpuset": str(cell.cpuset),
        "pcpuset": str(cell.pcpuset),
        "memory_mb": cell.memory_mb,
    }


def _lines(cells: list[Mapping[str, Any]]) -> str:
    return "\n".join(
        f"node {cell['id']}: shared {cell['cpuset'] or 'none'}, "
        f"dedicated {cell['pcpuset'] or 'none'}, {cell['memory_mb']} MiB"
        for cell in cells
    )
