"""Write the XML of a pinned guest of 64 vCPUs: cpu-tiers against the libvirt driver of Nova.

Both sides get the guest and its pinning: 2 nodes of 32 dedicated vCPUs with pages of 2 MiB, and a
weight. The side of Nova consists of the driver methods that make these elements, on a host
with a NUMA topology only, and ``to_xml``. The benchmark first checks that both XML documents
agree. Nova has to be installed (dependency group ``bench``).
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Nova and its libraries warn when imported
    import nova.conf
    from nova import objects
    from nova.virt.libvirt import config as vconfig
    from nova.virt.libvirt import driver

from lxml import etree
from measure import Ratio, number_of_rounds, report, seconds

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import Pages
from cpu_tiers.tools.libvirt.domain import write_domain

ROUNDS, CALLS = number_of_rounds(40), 10
GOAL = 0.6
NODES, VCPUS, MEMORY_MB = 2, 64, 65536
SPECS = {"hw:cpu_policy": "dedicated", "quota:cpu_shares": "6400"}

_EACH = VCPUS // NODES
_CPUS = [set(range(64 * node, 64 * node + 64)) for node in range(NODES)]
_VCPUS = [set(range(_EACH * node, _EACH * node + _EACH)) for node in range(NODES)]
_PINNING = [{vcpu: vcpu % _EACH + 64 * node for vcpu in _VCPUS[node]} for node in range(NODES)]


def our_guest() -> Guest:
    """Return the guest for the plugins of cpu-tiers."""
    cells = [
        GuestCell(id=node, cpuset=CpuSet(), pcpuset=CpuSet(_VCPUS[node]), memory_mb=32768)
        for node in range(NODES)
    ]
    pinning = [
        CellPinning(host_cell=node, cpu_pinning=_PINNING[node], page_size_kb=2048)
        for node in range(NODES)
    ]
    pages = tuple(Pages(size_kb=size, total=2**14) for size in (4, 2048))
    host = [
        ComputeCell(
            id=node,
            shared=CpuSet(),
            dedicated=CpuSet(_CPUS[node]),
            memory_mb=MEMORY_MB,
            pages=pages,
        )
        for node in range(NODES)
    ]
    return Guest(
        name="pinned",
        flavor=Flavor(name="pinned", vcpus=VCPUS, memory_mb=MEMORY_MB, extra_specs=SPECS),
        arch="x86_64",
        host=ComputeHost(cells=tuple(host)),
        topology=GuestTopology(cells=tuple(cells), cpu_policy="dedicated"),
        pinning=Pinning(cells=tuple(pinning)),
    )


class Driver(driver.LibvirtDriver):  # type: ignore[misc]  # Nova has no types
    """The driver of Nova, on a host with a NUMA topology only."""

    def __init__(self) -> None:
        pages = [objects.NUMAPagesTopology(size_kb=size, total=2**14) for size in (4, 2048)]
        self.topology = objects.NUMATopology(
            cells=[
                objects.NUMACell(id=node, cpuset=set(), pcpuset=_CPUS[node], mempages=pages)
                for node in range(NODES)
            ]
        )
        self._host = SimpleNamespace(is_cpu_control_policy_capable=lambda: True)

    def _has_numa_support(self) -> bool:
        return True

    def _get_host_numa_topology(self) -> objects.NUMATopology:
        return self.topology

    def _get_guest_iothread(self) -> int:
        return 1


def novas_guest() -> tuple[Any, ...]:
    """Return flavor, image and topology for the driver of Nova."""
    flavor = objects.Flavor(
        name="pinned", vcpus=VCPUS, memory_mb=MEMORY_MB, extra_specs=dict(SPECS)
    )
    cells = [
        objects.InstanceNUMACell(
            id=node,
            cpuset=set(),
            pcpuset=_VCPUS[node],
            memory=32768,
            pagesize=2048,
            cpu_policy="dedicated",
            cpu_pinning=_PINNING[node],
        )
        for node in range(NODES)
    ]
    topology = objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=None)
    return flavor, objects.ImageMeta(properties=objects.ImageMetaProps()), topology


def novas_xml(nova: Driver, flavor: Any, image: Any, topology: Any) -> str:
    """Return the XML that the driver of Nova and its configuration objects make."""
    guest = vconfig.LibvirtConfigGuest()
    guest.virt_type, guest.name, guest.os_type, guest.uuid = "kvm", "pinned", "hvm", None
    guest.memory, guest.vcpus = flavor.memory_mb * 1024, flavor.vcpus
    numa = nova._get_guest_numa_config(topology, flavor, image)
    guest.cpuset, guest.cputune, guest.numatune = numa.cpuset, numa.cputune, numa.numatune
    guest.membacking = nova._get_guest_memory_backing_config(
        topology, numa.numatune, flavor, image
    )
    guest.cpu = vconfig.LibvirtConfigGuestCPU()
    guest.cpu.numa = numa.numaconfig
    nova._update_guest_cputune(guest, flavor)
    return str(guest.to_xml())


def said(xml: str) -> set[tuple[str, ...]]:
    """Return the pins, nodes and pages of a domain, independent of the order of elements."""
    paths = ("cputune/*", "numatune/*", "cpu/numa/cell", "memoryBacking/hugepages/page")
    skip = ("memory", "unit")  # the units differ
    return {
        (
            path,
            str(one.tag),
            one.text or "",
            *(f"{k}={v}" for k, v in sorted(one.items()) if k not in skip),
        )
        for path in paths
        for one in etree.fromstring(xml).findall(path)
    }


def ratios() -> Iterator[Ratio]:
    """Yield the ratio."""
    ours, theirs, nova = our_guest(), novas_guest(), Driver()
    assert said(write_domain(ours)) == said(novas_xml(nova, *theirs))
    rounds = [
        (
            seconds(lambda: [write_domain(ours) for _ in range(CALLS)]),
            seconds(lambda: [novas_xml(nova, *theirs) for _ in range(CALLS)]),
        )
        for _ in range(ROUNDS)
    ]
    mine, novas = (min(column) / CALLS for column in zip(*rounds, strict=True))
    detail = f"{mine * 1e3:.2f} ms of {novas * 1e3:.2f} ms"
    yield Ratio(what=f"{VCPUS} pinned vCPUs", ratio=mine / novas, goal=GOAL, detail=detail)


if __name__ == "__main__":
    objects.register_all()
    nova.conf.CONF([], default_config_files=[])
    sys.exit(report("Domain XML / Nova's driver and to_xml", ratios()))
