"""The threads of vCPUs: their CPUs, their cgroups and their CPU time."""

from pathlib import Path

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.cgroup.files import Files
from cpu_tiers.tools.cgroup.host import read_host
from cpu_tiers.tools.cgroup.processes import read_cpu_times
from cpu_tiers.tools.tiers.domain import CpuTime, GuestCgroup
from tests.unit.cgroup.layouts import KINDS, Layout, guest

UUID = "00000000-0000-4000-8000-000000000001"


@pytest.fixture(params=KINDS)
def layout(request: pytest.FixtureRequest, tmp_path: Path) -> Layout:
    """A guest of two vCPUs, process 1010 with threads 1011 and 1012."""
    layout = Layout(tmp_path, request.param)
    layout.guest(UUID, 100, policies=(0, 0))
    return layout


def read(layout: Layout) -> GuestCgroup:
    return read_host([guest(UUID)], Files(layout.root)).guests[UUID]


def test_cpus_of_vcpus(layout: Layout) -> None:
    layout.write("proc/1010/task/1012/status", "Name:\tx\nCpus_allowed_list:\t1,3-4\n")
    found = [(vcpu.number, vcpu.thread, vcpu.cpus) for vcpu in read(layout).vcpus]
    assert found == [(0, "1011", CpuSet({0, 1})), (1, "1012", CpuSet({1, 3, 4}))]


def test_threads_outside_of_the_vcpu_cgroups(layout: Layout) -> None:
    assert read(layout).strays == {}
    inner = layout.paths[UUID] + ("/libvirt" if layout.systemd else "")
    layout.write("proc/1010/task/1011/cgroup", layout.member(f"{inner}/vcpu1"))
    layout.write("proc/1010/task/1012/cgroup", layout.member("/"))
    assert read(layout).strays == {"CPU 0/KVM": f"{inner}/vcpu1", "CPU 1/KVM": "/"}


def test_nanoseconds_of_vcpus(layout: Layout) -> None:
    layout.write("proc/1010/task/1011/schedstat", "1500000000 250000000 77\n")
    host = read_host([guest(UUID)], Files(layout.root))
    files = Files(layout.root)
    assert read_cpu_times(files, host.guests) == {}  # vCPU 1 has ended, and so has the guest
    layout.write("proc/1010/task/1012/schedstat", "0 0 0\n")
    assert read_cpu_times(files, host.guests) == {
        UUID: (CpuTime(1.5, 0.25, 77), CpuTime(0.0, 0.0))
    }
    assert files.faults == []
