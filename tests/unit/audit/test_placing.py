"""Threads of guests on other CPUs, or in other cgroups, than nova.conf and the XML say."""

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.domain import Domain, VcpuThread
from tests.unit.audit.hosts import SHARED, cgroups, evidence, guest, summary


@pytest.mark.parametrize(
    ("domain", "text"),
    [
        pytest.param(guest("a", 100), "", id="on all shared CPUs"),
        pytest.param(guest("a", 100, CpuSet({1})), "", id="on a single shared CPU"),
        pytest.param(guest("a", 100, CpuSet({1, 9})), "", id="the host does not have CPU 9"),
        pytest.param(guest("a", 100, CpuSet({2}), SHARED), "", id="mixed"),
        pytest.param(
            guest("a", 100, SHARED, CpuSet({1, 2})),
            "vCPU 1 may run on CPU 1-2, CPU 0-1 is for shared vCPUs",
            id="one CPU is dedicated",
        ),
        pytest.param(
            guest("a", 100, CpuSet({2, 3})),
            "vCPU 0 may run on CPU 2-3, CPU 0-1 is for shared vCPUs",
            id="floats over dedicated CPUs",
        ),
        pytest.param(
            guest("a", 100, None),
            "vCPU 0 may run on CPU 0-3, CPU 0-1 is for shared vCPUs",
            id="not pinned at all",
        ),
    ],
)
def test_pins_of_the_xml_against_nova_conf(domain: Domain, text: str) -> None:
    assert summary(evidence(domain)) == ([("pinning", "guest a", text)] if text else [])


def threads(*cpus: set[int]) -> tuple[VcpuThread, ...]:
    return tuple(
        VcpuThread(number=number, thread=str(number), cpus=CpuSet(each))
        for number, each in enumerate(cpus)
    )


OF_THE_SLICE = " (see cpuset.cpus of /machine.slice)"
"""A slice with AllowedCPUs= leaves a guest fewer CPUs, never more."""


@pytest.mark.parametrize(
    ("cpus", "texts"),
    [
        pytest.param([{0, 1}, {2}], [], id="as the XML says"),
        pytest.param(
            [{0}, {2}], [f"vCPU 0 run on CPU 0, its XML says CPU 0-1{OF_THE_SLICE}"], id="fewer"
        ),
        pytest.param([{0, 1}, {2, 3}], ["vCPU 1 run on CPU 2-3, its XML says CPU 2"], id="more"),
        pytest.param([{0}], [], id="a vCPU was plugged in meanwhile"),
        pytest.param([{0, 1, 64, 65}, {2, 64}], [], id="CPUs that might be plugged in"),
    ],
)
def test_cpus_of_the_threads_against_the_xml(cpus: list[set[int]], texts: list[str]) -> None:
    mixed = guest("a", 100, SHARED, CpuSet({2}))
    host = evidence(mixed, found=cgroups(a=100, of_guests={"vcpus": threads(*cpus)}))
    assert summary(host) == [("affinity", "guest a", f"the kernel lets {text}") for text in texts]


def test_a_thread_in_the_cgroup_of_a_service() -> None:
    away = {"strays": {"CPU 0/KVM": "/system.slice/x.service"}}
    assert summary(evidence(guest("a", 100), found=cgroups(a=100, of_guests=away))) == [
        (
            "thread-cgroup",
            "guest a",
            "thread 'CPU 0/KVM' is in cgroup /system.slice/x.service, the guest has"
            " /machine.slice/a.scope",
        )
    ]
