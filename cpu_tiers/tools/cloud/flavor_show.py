"""``cpu-tiers flavor show``: the CPUs of a flavor."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from typing import Any

from cpu_tiers.extra_specs.guest_cpus import guest_cpus
from cpu_tiers.guest.topology import dedicated_cpus, guest_topology, host_cpu_overhead
from cpu_tiers.model.guest import GuestCell
from cpu_tiers.tools.frame.documents import read_flavor, read_image
from cpu_tiers.tools.frame.formatting import FormattedValue, ShowCommand
from cpu_tiers.tools.frame.nova_conf_command import NovaConfCommand
from cpu_tiers.tools.frame.server_arguments import add_image_argument, add_source_arguments


class FlavorShow(NovaConfCommand, ShowCommand):
    """Show the dedicated, shared and real-time vCPUs and the NUMA nodes of a server.

    With --hosts, also show what the shares of the server are sold as on each kind of host, in
    CPUs, and what the kernel keeps of it on a host that is sold full.
    """

    takes_snapshot = True

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_source_arguments(parser, has_servers=False)
        add_image_argument(parser)
        parser.add_argument(
            "--hosts",
            action="store_true",
            help="also ask Placement, and show what the server is sold on each kind of host",
        )

    def take_action(self, parsed_args: Namespace) -> tuple[tuple[str, ...], tuple[object, ...]]:
        name = parsed_args.flavor
        is_asked = parsed_args.hosts or name is not None
        cloud = self.cloud_source(parsed_args, self.nova_conf()) if is_asked else None
        if cloud and name is not None:
            flavor = cloud.flavors_named([name])[0]
        else:
            flavor = read_flavor(parsed_args.flavor_file)
        image = read_image(parsed_args.image) if parsed_args.image else None
        guest = guest_cpus(flavor, image)
        topology = guest_topology(guest)
        shown = {
            "flavor": flavor.name,
            "vcpus": flavor.vcpus,
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
        if cloud and parsed_args.hosts:
            # Imported here: without --hosts, no command needs a cloud in memory.
            from cpu_tiers.tools.cloud.sold_on_hosts import sold_on_hosts

            shown |= sold_on_hosts(cloud, flavor, guest.counts.shared)
        return tuple(shown), tuple(shown.values())


def _cell(cell: GuestCell) -> dict[str, Any]:
    cpus = {"cpuset": str(cell.cpuset), "pcpuset": str(cell.pcpuset)}
    return {"id": cell.id, **cpus, "memory_mb": cell.memory_mb}


def _lines(cells: list[Mapping[str, Any]]) -> str:
    return "\n".join(
        f"node {cell['id']}: shared {cell['cpuset'] or 'none'}, "
        f"dedicated {cell['pcpuset'] or 'none'}, {cell['memory_mb']} MiB"
        for cell in cells
    )
