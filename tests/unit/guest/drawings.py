"""Hosts drawn as text, guests, and pinnings as text, for tests of pinning.

A host is drawn cell by cell, ``|`` between cells and a blank between cores. A letter or
sign is a CPU, numbered from left to right: ``.`` dedicated and free, ``x`` dedicated and
taken, ``s`` shared, ``b`` both shared and dedicated, ``t`` the same and taken.
"""

from cpu_tiers.model.compute import ComputeCell, ComputeHost, Usage
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import CpuPolicy, EmulatorThreadsPolicy, PageSize, ThreadPolicy
from cpu_tiers.model.guest import GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import HostTopology, NumaCell, Pages


def host(drawing: str, memory_mb: int = 1024) -> ComputeHost:
    cells, first = [], 0
    for number, drawn in enumerate(drawing.split("|")):
        signs = dict(enumerate(drawn.replace(" ", ""), first))
        cores = []
        for core in drawn.split():
            cores.append(CpuSet(range(first, first + len(core))))
            first += len(core)
        cells.append(
            ComputeCell(
                id=number,
                shared=CpuSet(cpu for cpu, sign in signs.items() if sign in "sbt"),
                dedicated=CpuSet(cpu for cpu, sign in signs.items() if sign != "s"),
                memory_mb=memory_mb,
                cores=tuple(cores),
                used=Usage(pinned=CpuSet(cpu for cpu, sign in signs.items() if sign in "xt")),
            )
        )
    return ComputeHost(cells=tuple(cells))


def guest(
    *cells: tuple[int, int],
    threads: ThreadPolicy | None = None,
    emulator: EmulatorThreadsPolicy | None = None,
    page_size: PageSize | None = None,
    memory_mb: int = 1,
) -> GuestTopology:
    """A guest with these numbers of shared and dedicated vCPUs; shared ones come first."""
    made, first = [], 0
    for number, (shared, dedicated) in enumerate(cells):
        middle, last = first + shared, first + shared + dedicated
        made.append(
            GuestCell(
                id=number,
                cpuset=CpuSet(range(first, middle)),
                pcpuset=CpuSet(range(middle, last)),
                memory_mb=memory_mb,
            )
        )
        first = last
    policy: CpuPolicy = "shared"
    if any(dedicated for _, dedicated in cells):
        policy = "mixed" if any(shared for shared, _ in cells) else "dedicated"
    return GuestTopology(
        cells=tuple(made),
        cpu_policy=policy,
        cpu_thread_policy=threads,
        emulator_threads_policy=emulator,
        page_size=page_size,
    )


def placed(pinning: Pinning) -> list[str]:
    """Each guest cell as ``host cell: CPUs in the order of vCPUs + reserved``."""
    return [
        f"{cell.host_cell}: {' '.join(str(cpu) for _, cpu in sorted(cell.cpu_pinning.items()))}"
        + (f" + {cell.cpuset_reserved}" if cell.cpuset_reserved else "")
        for cell in pinning.cells
    ]


# 16 MiB in 4 kB; 4 pages of 2 MiB, one of them reserved
PAGED = ComputeHost.of(
    HostTopology(
        arch="x86_64",
        cells=(
            NumaCell(
                id=0,
                cpus=CpuSet({0, 1}),
                memory_kb=24576,
                pages=(Pages(size_kb=4, total=4096), Pages(size_kb=2048, total=4)),
            ),
        ),
    ),
    cpu_dedicated_set=CpuSet({0, 1}),
    reserved_pages={0: {2048: 1}},
)
