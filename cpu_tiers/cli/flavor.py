"""``cpu-tiers flavor check`` and ``flavor show``: what is wrong, and what is asked for."""

import logging
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from typing import Any

from cliff.lister import Lister

from cpu_tiers import extensions
from cpu_tiers.cli.columns import Cell, Show
from cpu_tiers.cli.documents import read_flavor
from cpu_tiers.cli.request import add_server_arguments, read_server
from cpu_tiers.errors import FaultList
from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.guest.topology import dedicated_cpus, guest_topology, host_cpu_overhead
from cpu_tiers.model.guest import GuestCell
from cpu_tiers.translators import ServerRequest, translate

LOG = logging.getLogger(__name__)


class FlavorCheck(Lister):
    """List every fault of each flavor; exit status 1 if there is any."""

    faulty = False

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take any number of flavors."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "flavor", nargs="+", metavar="FLAVOR.json", help="openstack flavor show -f json"
        )
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], Iterable[object]]:
        """Check one file after the other."""
        translators = extensions.load(extensions.TRANSLATORS)
        rows = []
        for path in parsed_args.flavor:
            faults = FaultList()
            with faults:
                translate(ServerRequest(flavor=read_flavor(path)), translators)
            rows += [(path, *fault) for fault in faults.faults]
        self.faulty = bool(rows)
        LOG.info("flavors: %d, faults: %d", len(parsed_args.flavor), len(rows))
        return ("file", "where", "given", "allowed"), rows

    def run(self, parsed_args: Namespace) -> int:
        """Tell a script, too."""
        status: int = super().run(parsed_args)
        return status or int(self.faulty)


class FlavorShow(Show):
    """Show the CPUs and NUMA nodes of a server: which vCPU is dedicated, shared, real-time."""

    def get_parser(self, prog_name: str) -> ArgumentParser:
        """Take a flavor, and an image."""
        parser = super().get_parser(prog_name)
        add_server_arguments(parser)
        return parser

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        """Decide, and lay out what was decided."""
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
            "cells": Cell([_cell(cell) for cell in topology.cells] if topology else [], _lines),
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
