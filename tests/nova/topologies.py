"""Hosts and guests drawn at random, as Nova's objects, and what Nova makes of them."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import random

from nova import exception, objects
from nova.virt import hardware

from cpu_tiers.model.guest import GuestCell, GuestTopology, Pinning

_PAGE_SIZES: dict[object, int] = {
    "small": hardware.MEMPAGES_SMALL,
    "large": hardware.MEMPAGES_LARGE,
    "any": hardware.MEMPAGES_ANY,
}


def host_cell(rng: random.Random, number: int, threads: int, *, legacy: bool) -> objects.NUMACell:
    cpus = range(10 * number, 10 * number + rng.choice([2, 4, 6, 8]))
    siblings = [set(cpus[i : i + threads]) for i in range(0, len(cpus), threads)]
    dedicated = {cpu for cpu in cpus if legacy or rng.random() < 0.8}
    if legacy or rng.random() < 0.5:  # whole cores, and whole cores of them taken
        dedicated = {cpu for core in siblings if core & dedicated for cpu in core}
    pinned = {cpu for cpu in dedicated if rng.random() < 0.2}
    memory = rng.choice([4, 8, 16])
    sizes = rng.choice([(4,), (4, 2048), (4, 2048)])
    return objects.NUMACell(
        id=number,
        cpuset=set(cpus) if legacy else set(cpus) - dedicated,
        pcpuset=dedicated,
        memory=memory,
        socket=number,
        cpu_usage=rng.randint(0, 3),
        memory_usage=rng.randint(0, 3),
        pinned_cpus=pinned,
        siblings=siblings,
        mempages=[
            objects.NUMAPagesTopology(
                size_kb=size,
                total=memory * 512 // size,
                used=rng.randint(0, 1),
                reserved=rng.randint(0, 1),
            )
            for size in sizes
        ],
    )


def instance_topology(rng: random.Random) -> objects.InstanceNUMATopology:
    policy = rng.choice(["dedicated", "dedicated", "mixed", "shared", None])
    threads = rng.choice([None, "prefer", "isolate", "require"])
    size = rng.choice([None, None, -1, -2, -3, 2048])
    cells, first = [], 0
    for number in range(rng.choice([1, 1, 2, 2, 3])):
        shared = 0 if policy == "dedicated" else rng.randint(1, 2)
        last = first + shared
        if policy in ("dedicated", "mixed"):
            last += rng.randint(1, 4)
        cells.append(
            objects.InstanceNUMACell(
                id=number,
                cpuset=set(range(first, first + shared)),
                pcpuset=set(range(first + shared, last)),
                memory=rng.choice([1, 2, 4]),
                pagesize=size,
                cpu_policy=policy,
                cpu_thread_policy=threads if policy in ("dedicated", "mixed") else None,
                cpuset_reserved=None,
                cpu_pinning_raw=None,
            )
        )
        first = last
    isolate = policy in ("dedicated", "mixed") and rng.random() < 0.4
    return objects.InstanceNUMATopology(
        cells=cells, emulator_threads_policy="isolate" if isolate else None
    )


def nova_places(
    host: objects.NUMATopology,
    guest: objects.InstanceNUMATopology,
    limits: objects.NUMATopologyLimits | None,
) -> objects.InstanceNUMATopology | None:
    """Nova's pinning, unless Nova itself cannot use it.

    It remembers what fitted by the ids of guest cells, which it changes to those
    of host cells, so some of what it returns it would refuse when asked again;
    and with ``isolate`` it may take a CPU for emulator threads whose sibling another
    guest has, and then fail to account for it.
    """
    placed = hardware.numa_fit_instance_to_host(host, copy.deepcopy(guest), {}, limits=limits)
    if placed is None:
        return None
    at = {cell.id: cell for cell in host.cells}
    try:
        for index, (asked, cell) in enumerate(zip(guest.cells, placed.cells, strict=True)):
            extra = int(index == 0 and guest.emulator_threads_isolated)
            again = copy.deepcopy(asked)
            if hardware._numa_fit_instance_cell(at[cell.id], again, limits, extra) is None:
                return None
        hardware.numa_usage_from_instance_numa(host, placed)
    except (
        exception.CPUPinningInvalid,
        exception.CPUPinningUnknown,
        exception.MemoryPageSizeNotSupported,
    ):
        return None
    return placed


def to_instance_topology(
    guest: GuestTopology, pinning: Pinning | None = None
) -> objects.InstanceNUMATopology:
    """Return a guest, pinned if ``pinning`` is given, as Nova has it in its database."""
    cells = [_instance_cell(guest, cell) for cell in guest.cells]
    for cell, pinned in zip(cells, () if pinning is None else pinning.cells, strict=False):
        cell.id = pinned.host_cell
        cell.cpu_pinning = dict(pinned.cpu_pinning) or None
        cell.cpuset_reserved = set(pinned.cpuset_reserved) or None
        if pinned.page_size_kb is not None:
            cell.pagesize = pinned.page_size_kb
    return objects.InstanceNUMATopology(
        cells=cells, emulator_threads_policy=guest.emulator_threads_policy
    )


def _instance_cell(guest: GuestTopology, cell: GuestCell) -> objects.InstanceNUMACell:
    size = guest.page_size
    return objects.InstanceNUMACell(
        id=cell.id,
        cpuset=set(cell.cpuset),
        pcpuset=set(cell.pcpuset),
        cpuset_reserved=None,
        memory=cell.memory_mb,
        pagesize=None if size is None else _PAGE_SIZES.get(size, size),
        cpu_pinning_raw=None,
        cpu_policy=guest.cpu_policy,
        cpu_thread_policy=guest.cpu_thread_policy,
    )
