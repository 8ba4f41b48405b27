"""Processes and a hypervisor that take CPU time beside the vCPUs of guests."""

from collections.abc import Mapping

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.domain import BusyProcess, CpuTime, HostLoad
from tests.unit.audit.hosts import cgroups, evidence, guest, summary

GUEST = guest("a", 100, CpuSet({0}))
FULL, HALF = (CpuTime(10.0, 0.0),), (CpuTime(5.0, 5.0),)
"""CPU 0 is the guest's alone: 10 s of 10 s are due."""


def process(
    pid: str, used: float, cpus: set[int], policies: Mapping[str, int] | None = None
) -> BusyProcess:
    return BusyProcess(
        pid=pid, name="job", used=used, cpus=CpuSet(cpus), cgroup="/x", policies=policies or {}
    )


def found(
    spent: tuple[CpuTime, ...], *busy: BusyProcess, steal: Mapping[int, float] | None = None
) -> list[tuple[str, str, str]]:
    load = HostLoad(busy=busy, steal=steal or {})
    kernel = cgroups(a=100, of_guests={"pid": "7"})
    every = summary(evidence(GUEST, found=kernel, spent={"a": spent}, load=load, shares=200))
    return [one for one in every if one[0] != "short"]


def test_busy_processes_are_named_if_a_guest_fell_short() -> None:
    beside, elsewhere = process("8", 0.5, {0, 1}), process("9", 0.9, {1})
    assert found(FULL, beside) == []
    assert found(HALF, elsewhere, beside) == [
        (
            "busy",
            "process 8",
            "process 'job' in cgroup /x used 0.50 CPUs, and may run on CPU 0 beside guests that"
            " fell short",
        )
    ]
    many = [process(str(number), 0.1, {0}) for number in range(10, 20)]
    assert [where for _, where, _ in found(HALF, *many)] == [f"process {n}" for n in range(10, 15)]


@pytest.mark.parametrize(
    ("used", "texts"),
    [
        pytest.param(0.59, [], id="its vCPU ran for 0.5 CPUs, 0.09 are left"),
        pytest.param(0.8, ["threads of its QEMU that are no vCPUs used 0.30 CPUs"], id="0.3"),
        pytest.param(0.95, [], id="0.45: the guest got 0.95 of 1, and is not short"),
    ],
)
def test_threads_of_qemu_that_are_no_vcpus(used: float, texts: list[str]) -> None:
    qemu = process("7", used, {0, 1, 2, 3}, {"CPU 0/KVM": 0})
    assert found(HALF, qemu) == [("busy", "guest a", text) for text in texts]


@pytest.mark.parametrize(
    ("policies", "cpus", "names"),
    [
        pytest.param({"job": 0}, {0}, "", id="none is real-time"),
        pytest.param({"job": 0, "fast": 1}, {0, 1}, "'fast' (SCHED_FIFO)", id="one thread"),
        pytest.param({"job": 2}, {1, 2}, "", id="where no guest runs"),
    ],
)
def test_a_busy_real_time_process(policies: Mapping[str, int], cpus: set[int], names: str) -> None:
    rows = found(FULL, process("8", 0.25, cpus, policies))
    if names:  # named once, also if the guest fell short
        assert rows == found(HALF, process("8", 0.25, cpus, policies))
    text = (
        "process 'job' used 0.25 CPUs, may run on CPU 0 of guests, and has the real-time threads"
        f" {names}"
    )
    assert rows == ([("real-time", "process 8", text)] if names else [])


@pytest.mark.parametrize(
    ("steal", "taken"),
    [({0: 0.09}, ""), ({0: 0.12, 1: 0.5}, "up to 12% of the time of CPU 0"), ({1: 0.5}, "")],
)
def test_steal_time_of_the_cpus_of_guests(steal: Mapping[int, float], taken: str) -> None:
    text = f"the hypervisor of this machine took {taken}"
    assert found(FULL, steal=steal) == ([("steal", "host", text)] if taken else [])
