"""Define pinned guests, start them if the machine can, and read them back with virsh.

CPUs 0 and 1 and NUMA node 0 of this machine are enough to start the guests. A guest that cannot
start on this machine is defined only, and the test is skipped with the reason.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning
from cpu_tiers.model.host import Pages
from cpu_tiers.tools.libvirt.domain import write_domain
from tests.libvirt.embedded import configure

Virsh = Callable[..., str]

PAGES = (Pages(size_kb=4, total=2**14), Pages(size_kb=2048, total=32))
SHARED, DEDICATED, NO_CPU = CpuSet({1}), CpuSet({0, 1}), CpuSet()
HOST = ComputeHost(
    cells=tuple(
        ComputeCell(id=cell, shared=SHARED, dedicated=DEDICATED, memory_mb=64, pages=PAGES)
        for cell in (0, 1)
    ),
    cpu_shared_set=SHARED,
)


def guest(topology: GuestTopology, *cells: CellPinning) -> Guest:
    flavor = Flavor(
        name="pinned",
        vcpus=sum(len(cell.cpuset | cell.pcpuset) for cell in topology.cells),
        memory_mb=sum(cell.memory_mb for cell in topology.cells),
        extra_specs={"quota:cpu_shares_multiplier": "50"},
    )
    return Guest(
        name="pinned",
        flavor=flavor,
        arch="x86_64",
        host=HOST,
        topology=topology,
        pinning=Pinning(cells=cells),
    )


def cell(number: int, shared: set[int], dedicated: set[int]) -> GuestCell:
    return GuestCell(id=number, cpuset=CpuSet(shared), pcpuset=CpuSet(dedicated), memory_mb=32)


DEDICATED_GUEST = guest(
    GuestTopology(cells=(cell(0, set(), {0, 1}),), cpu_policy="dedicated"),
    CellPinning(host_cell=0, cpu_pinning={0: 1, 1: 0}),
)
MIXED = guest(
    GuestTopology(cells=(cell(0, {0}, {1}),), cpu_policy="mixed"),
    CellPinning(host_cell=0, cpu_pinning={1: 0}),
)
ISOLATED = guest(
    GuestTopology(
        cells=(cell(0, set(), {0}),), cpu_policy="dedicated", emulator_threads_policy="isolate"
    ),
    CellPinning(host_cell=0, cpu_pinning={0: 0}, cpuset_reserved=CpuSet({1})),
)
TWO_NODES = guest(
    GuestTopology(cells=(cell(0, {0}, set()), cell(1, set(), {1})), cpu_policy="mixed"),
    CellPinning(host_cell=0),
    CellPinning(host_cell=0, cpu_pinning={1: 0}),
)
TWO_HOST_NODES = guest(
    GuestTopology(cells=(cell(0, {0}, set()), cell(1, set(), {1})), cpu_policy="mixed"),
    CellPinning(host_cell=1),
    CellPinning(host_cell=0, cpu_pinning={1: 0}),
)
REALTIME = guest(
    GuestTopology(cells=(cell(0, {0}, {1}),), cpu_policy="mixed", realtime=CpuSet({1})),
    CellPinning(host_cell=0, cpu_pinning={1: 0}),
)
NEW_PAGES = 32
LARGE_PAGES = guest(
    GuestTopology(cells=(cell(0, {0}, set()),), page_size=2048),
    CellPinning(host_cell=0, page_size_kb=2048),
)


@pytest.fixture(scope="module")
def huge_pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """Have 2 MiB pages for one guest, mounted in a folder; none where the kernel has no room."""
    count = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
    if not count.exists():
        yield None
        return
    before, folder = int(count.read_text()), tmp_path_factory.mktemp("huge")
    count.write_text(str(before + NEW_PAGES))
    mounted = subprocess.run(["mount", "-t", "hugetlbfs", "none", folder], check=False)
    try:
        enough = int(count.read_text()) >= before + NEW_PAGES // 2 and mounted.returncode == 0
        yield folder if enough else None
    finally:
        if mounted.returncode == 0:
            subprocess.run(["umount", folder], check=True)
        # Another run may have asked for pages in the meantime.
        count.write_text(str(max(0, int(count.read_text()) - NEW_PAGES)))


@pytest.fixture(scope="module")
def virsh(tmp_path_factory: pytest.TempPathFactory, huge_pages: Path | None, kvm: bool) -> Virsh:
    """Run commands of virsh on one guest, in a libvirt that knows no other."""
    root = tmp_path_factory.mktemp("virsh")
    uri = configure(root, hugetlbfs_mount=str(huge_pages or ""))

    def virsh(guest: Guest, *commands: str) -> str:
        xml = write_domain(guest)
        path = root / "guest.xml"
        path.write_text(xml if kvm else xml.replace('type="kvm"', 'type="qemu"', 1))
        script = "; ".join([f"define --validate {path}", *commands, "undefine pinned"])
        result = subprocess.run(
            ["virsh", "--quiet", "--connect", uri, script],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    return virsh


def pins(output: str) -> dict[str, str]:
    """Return what ``vcpupin`` (vCPU and CPUs) and ``emulatorpin`` (CPUs alone) printed."""
    found = re.findall(r"^ *(?:([0-9]+) +)?([0-9,-]+)$", output, re.MULTILINE)
    return {vcpu or "emulator": cpus for vcpu, cpus in found}


CASES = [
    pytest.param(DEDICATED_GUEST, {"0": "1", "1": "0", "emulator": "0-1"}, id="dedicated"),
    pytest.param(MIXED, {"0": "1", "1": "0", "emulator": "0-1"}, id="mixed"),
    pytest.param(ISOLATED, {"0": "0", "emulator": "1"}, id="isolated emulator threads"),
    pytest.param(
        TWO_NODES, {"0": "1", "1": "0", "emulator": "0-1"}, id="two nodes on one of the host"
    ),
    pytest.param(TWO_HOST_NODES, {"0": "1", "1": "0", "emulator": "0-1"}, id="two nodes on two"),
    pytest.param(REALTIME, {"0": "1", "1": "0", "emulator": "1"}, id="real-time"),
    pytest.param(LARGE_PAGES, {"0": "1", "emulator": "1"}, id="large pages"),
]


def why_it_cannot_start(guest: Guest, huge_pages: Path | None) -> str | None:
    """Return what this host lacks."""
    if guest is TWO_HOST_NODES and not Path("/sys/devices/system/node/node1").exists():
        return "the host has one NUMA node"
    # With CONFIG_RT_GROUP_SCHED each cgroup has a budget of its own; those of libvirt have none.
    if guest is REALTIME and list(Path("/sys/fs/cgroup").glob("cpu*/cpu.rt_runtime_us")):
        return "the kernel grants real time by cgroup, and none to those that libvirt makes"
    if guest is LARGE_PAGES and huge_pages is None:
        return "the kernel has no room for 2 MiB pages"
    return None


@pytest.mark.parametrize(("guest", "expected"), CASES)
def test_defined(virsh: Virsh, guest: Guest, expected: dict[str, str]) -> None:
    assert pins(virsh(guest, "vcpupin pinned", "emulatorpin pinned")) == expected


@pytest.mark.parametrize(("guest", "expected"), CASES)
def test_started(
    virsh: Virsh, huge_pages: Path | None, guest: Guest, expected: dict[str, str]
) -> None:
    if reason := why_it_cannot_start(guest, huge_pages):
        pytest.skip(f"defined only: {reason}")
    live = ("vcpupin pinned --live", "emulatorpin pinned --live", "vcpuinfo pinned --pretty")
    output = virsh(guest, "start pinned", *live, "destroy pinned")
    assert pins(output) == expected
    affinity = re.findall(r"^CPU Affinity: +([0-9,-]+)", output, re.MULTILINE)
    assert affinity == [cpus for vcpu, cpus in expected.items() if vcpu != "emulator"]
