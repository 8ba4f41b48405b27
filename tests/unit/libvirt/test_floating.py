"""Where shared vCPUs and emulator threads run.

The host has two cells; CPUs 0-3 and 8-11 are dedicated, 4-5 and 12-13 shared.
The guest has a cell on each: vCPU 0 shared, vCPUs 1 and 2 on CPUs 1 and 2; vCPU 3 on CPU 9.
"""

from dataclasses import replace

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.libvirt.cputune import cpus_of_vcpus, emulator_thread_cpus
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import EmulatorThreadsPolicy
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text, where="test") if text else CpuSet()


HOST = ComputeHost(
    cells=(
        ComputeCell(id=0, shared=cpus("4-5"), dedicated=cpus("0-3"), memory_mb=1024),
        ComputeCell(id=1, shared=cpus("12-13"), dedicated=cpus("8-11"), memory_mb=1024),
    ),
    cpu_shared_set=cpus("4-5,12-13"),
)
GUEST = GuestTopology(
    cells=(
        GuestCell(id=0, cpuset=cpus("0"), pcpuset=cpus("1-2"), memory_mb=512),
        GuestCell(id=1, cpuset=cpus(""), pcpuset=cpus("3"), memory_mb=512),
    ),
    cpu_policy="mixed",
)
PINNING = Pinning(
    cells=(
        CellPinning(host_cell=0, cpu_pinning={1: 1, 2: 2}, cpuset_reserved=cpus("3")),
        CellPinning(host_cell=1, cpu_pinning={3: 9}),
    )
)


def test_shared_vcpus_float_over_the_shared_cpus_of_the_node() -> None:
    cells = zip(GUEST.cells, PINNING.cells, strict=True)
    by_vcpu = {vcpu: str(of_vcpu) for vcpu, of_vcpu in cpus_of_vcpus(cells, HOST).items()}
    assert by_vcpu == {0: "4-5", 1: "1", 2: "2", 3: "9"}


@pytest.mark.parametrize(
    ("policy", "realtime", "shared_set", "expected"),
    [
        pytest.param("isolate", "", "4-5,12-13", "3", id="isolate: the reserved CPU"),
        pytest.param("isolate", "1-3", "", "3", id="isolate, real-time"),
        pytest.param("share", "", "4-5,12-13", "4-5,12-13", id="share: cpu_shared_set"),
        pytest.param("share", "1-3", "4-5,12-13", "4-5,12-13", id="share, real-time"),
        pytest.param("share", "", "", "1-2,4-5,9", id="share without cpu_shared_set: the vCPUs'"),
        pytest.param(None, "", "4-5,12-13", "1-2,4-5,9", id="default: the CPUs of all vCPUs"),
        pytest.param(
            None, "1,3", "4-5,12-13", "2,4-5", id="real-time 1 and 3: the CPUs of 0 and 2"
        ),
        pytest.param(None, "0-3", "", "1-2,4-5,9", id="all real-time: the CPUs of all vCPUs"),
    ],
)
def test_emulator_threads(
    policy: EmulatorThreadsPolicy | None, realtime: str, shared_set: str, expected: str
) -> None:
    guest = replace(GUEST, emulator_threads_policy=policy, realtime=cpus(realtime))
    host = replace(HOST, cpu_shared_set=cpus(shared_set))
    assert str(emulator_thread_cpus(guest, PINNING, host)) == expected


def test_real_time_and_share_without_a_shared_set() -> None:
    """Nova's _get_guest_memory_backing_config refuses to start such a guest."""
    guest = replace(GUEST, emulator_threads_policy="share", realtime=cpus("1-3"))
    with pytest.raises(InvalidInput, match="cpu_shared_set: not set on the host of a guest with"):
        emulator_thread_cpus(guest, PINNING, replace(HOST, cpu_shared_set=cpus("")))


def test_a_cell_that_the_host_does_not_have() -> None:
    with pytest.raises(InvalidInput, match="host NUMA cell 7: the host does not have it"):
        cpus_of_vcpus([(GUEST.cells[0], CellPinning(host_cell=7))], HOST)
