"""Hosts and servers that a test draws by hand: shared CPUs, PCI devices, and where servers go."""

import json
from collections.abc import Sequence
from typing import Any

from tests import made_once
from tests.nova.scheduler.random_checks import Empty
from tests.nova.scheduler.random_scheduler import request_spec, scheduler, suffixes_of
from tests.random_clouds.brute_force import Placement
from tests.random_clouds.hosts import Cell, Device, Host, Node, Server
from tests.random_clouds.providers import Providers

GIB = 1024 * 1024 // 4
"""The number of pages of 4 KiB."""


def cell(number: int, cpus: Sequence[int]) -> Cell:
    """Return a NUMA cell of 4 GiB with shared CPUs."""
    return Cell(
        id=number,
        socket=0,
        cores=tuple((cpu,) for cpu in cpus),
        shared=frozenset(cpus),
        dedicated=frozenset(),
        pages={4: 4 * GIB},
        reserved={},
    )


def host(cells: Sequence[Cell], devices: Sequence[Device]) -> Host:
    """Return the host ``cn``, which reports its NUMA nodes.

    :param devices: the PCI devices of the alias.
    """
    return Host(
        name="cn",
        reports=True,
        pcpu=False,
        shared_set=True,
        cpu_ratio=1.0,
        ram_ratio=1.0,
        disk_gb=0,
        cells=tuple(cells),
        ports={"direct": (), "normal": ()},
        aliases=tuple(devices),
    )


def server(*vcpus: int, devices: int = 0, policy: str | None = None) -> Server:
    """Return a server with a NUMA node of 256 MiB for each number of vCPUs.

    :param devices: so many PCI devices of the alias.
    :param policy: ``hw:pci_numa_affinity_policy``.
    """
    return Server(
        nodes=tuple(Node(shared=each, dedicated=0, memory_mb=256) for each in vcpus),
        topology=True,
        pages=None,
        isolate=False,
        disk_gb=0,
        ports=(),
        devices=devices,
        policy=policy,
    )


def choose(
    empty: Empty, on: Host, of: Server, count: int = 1, **options: Any
) -> list[list[Placement]]:
    """Return where each server of a request is, and then its alternates.

    :param options: of ``[filter_scheduler]``.
    """
    made_once.copy_to_placement(empty.rows)
    providers = Providers([on])
    aliases = scheduler(empty.adapter, [on], providers.uuids, aliases=True, more=options)
    with aliases as scheduling:
        spec = request_spec(of)
        suffixes = suffixes_of(spec, of)
        return [
            [
                providers.placement_of(
                    on.name, json.loads(each.allocation_request)["mappings"], suffixes
                )
                for each in selections
            ]
            for selections in scheduling.schedule(spec, count)
        ]
