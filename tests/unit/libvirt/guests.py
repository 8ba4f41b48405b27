"""Guests with NUMA nodes, on a host of two cells: CPUs 0-7 and 8-15, half of each shared."""

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import HostTopology, NumaCell, Pages

NO_CPU = CpuSet()

_TOPOLOGY = HostTopology(
    arch="x86_64",
    cells=tuple(
        NumaCell(
            id=cell,
            cpus=CpuSet(range(8 * cell, 8 * cell + 8)),
            memory_kb=2**23,
            pages=tuple(Pages(size_kb=size, total=4) for size in (4, 2048, 1048576)),
        )
        for cell in (0, 1)
    ),
)
HOST = ComputeHost.of(
    _TOPOLOGY,
    cpu_shared_set=CpuSet({0, 1, 2, 3, 8, 9, 10, 11}),
    cpu_dedicated_set=CpuSet({4, 5, 6, 7, 12, 13, 14, 15}),
)
NO_SHARED_SET = ComputeHost.of(_TOPOLOGY, cpu_dedicated_set=CpuSet(range(16)))


def guest(
    topology: GuestTopology | None = None, /, *cells: CellPinning, **extra_specs: str
) -> Guest:
    """Return a guest; ``__`` stands for the colon in names of extra specs."""
    specs = {key.replace("__", ":"): value for key, value in extra_specs.items()}
    parts = topology.cells if topology else ()
    vcpus = sum(len(cell.cpuset | cell.pcpuset) for cell in parts) or 1
    memory_mb = sum(cell.memory_mb for cell in parts) or 4096
    return Guest(
        name="gold",
        flavor=Flavor(name="gold", vcpus=vcpus, memory_mb=memory_mb, extra_specs=specs),
        arch="x86_64",
        host=HOST,
        topology=topology,
        pinning=Pinning(cells=cells) if topology else None,
        realtime_priority=7,
    )


MIXED = guest(
    GuestTopology(
        cells=(
            GuestCell(id=0, cpuset=CpuSet({0, 1}), pcpuset=CpuSet({2}), memory_mb=1024),
            GuestCell(id=1, cpuset=CpuSet({3, 4, 5, 6}), pcpuset=CpuSet({7}), memory_mb=2048),
        ),
        cpu_policy="mixed",
    ),
    CellPinning(host_cell=1, cpu_pinning={2: 12}),
    CellPinning(host_cell=0, cpu_pinning={7: 4}),
    quota__cpu_shares_multiplier="2.5",
)
"""hw:cpu_dedicated_mask=2,7, hw:numa_cpus.0=0-2, .1=3-7: the spec's example of a mixed guest."""

REALTIME = guest(
    GuestTopology(
        cells=(GuestCell(id=0, cpuset=CpuSet({0}), pcpuset=CpuSet({1, 2}), memory_mb=1024),),
        cpu_policy="mixed",
        realtime=CpuSet({1, 2}),
    ),
    CellPinning(host_cell=0, cpu_pinning={1: 4, 2: 5}),
)
"""hw:cpu_realtime=yes, hw:cpu_realtime_mask=1-2."""

ISOLATED = guest(
    GuestTopology(
        cells=(
            GuestCell(id=0, cpuset=NO_CPU, pcpuset=CpuSet({0, 1}), memory_mb=1024),
            GuestCell(id=1, cpuset=NO_CPU, pcpuset=CpuSet({2, 3}), memory_mb=1024),
        ),
        cpu_policy="dedicated",
        emulator_threads_policy="isolate",
    ),
    CellPinning(host_cell=0, cpu_pinning={0: 4, 1: 6}, cpuset_reserved=CpuSet({5})),
    CellPinning(host_cell=1, cpu_pinning={2: 15, 3: 13}),
)
"""hw:emulator_threads_policy=isolate: a CPU more, of node 0."""

LARGE_PAGES = guest(
    GuestTopology(
        cells=(
            GuestCell(id=0, cpuset=CpuSet({0}), pcpuset=NO_CPU, memory_mb=1024),
            GuestCell(id=1, cpuset=CpuSet({1}), pcpuset=NO_CPU, memory_mb=1024),
            GuestCell(id=2, cpuset=CpuSet({2}), pcpuset=NO_CPU, memory_mb=1024),
        ),
        page_size="any",
    ),
    CellPinning(host_cell=0, page_size_kb=2048),
    CellPinning(host_cell=1, page_size_kb=1048576),
    CellPinning(host_cell=1, page_size_kb=4),
)
"""hw:mem_page_size=any: each node has what its host cell had left."""
