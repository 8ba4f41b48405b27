"""Processes and a hypervisor that take CPU time beside the vCPUs of guests."""

from collections.abc import Mapping
from dataclasses import replace

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


def named(*busy: BusyProcess, **more: object) -> list[tuple[str, str, str]]:
    """Return what is said of processes beside a guest that fell short."""
    kernel = cgroups(a=100, of_guests={"pid": "7"}, **more)  # type: ignore[arg-type]
    host = evidence(GUEST, found=kernel, spent={"a": HALF}, load=HostLoad(busy=busy), shares=200)
    return [one for one in summary(host) if one[0] != "short"]


def test_small_processes_of_a_cgroup_are_named_together() -> None:
    many = replace(process("8", 0.9, {0, 1}), processes=30)
    assert named(many) == [
        (
            "busy",
            "processes of cgroup /x",
            "30 small processes in cgroup /x, as 'job', used 0.90 CPUs, and may run on CPU 0"
            " beside guests that fell short",
        )
    ]


def test_a_foreign_process_with_the_weight_of_a_guest_is_named_once() -> None:
    thief = replace(process("8", 0.5, {0}), cgroup="/machine.slice/a.scope/libvirt/emulator")
    assert named(thief) == [
        (
            "foreign",
            "process 8",
            "process 'job' in cgroup /machine.slice/a.scope/libvirt/emulator used 0.50 CPUs with a"
            " part of the weight of guest a",
        )
    ]


def test_nobody_else_is_named_for_a_guest_with_a_cause_of_its_own() -> None:
    innocent = process("8", 0.5, {0})
    quota = {"quotas": {"/machine.slice/a.scope": (2000, 100_000)}}
    assert [kind for kind, *_ in named(innocent, parts=quota)] == ["quota"]
    # of all guests
    above = {"quotas": {"/machine.slice": (2000, 100_000)}}
    assert [kind for kind, *_ in named(innocent, parts=above)] == ["quota"]


def test_nobody_else_is_named_where_guests_without_a_tier_took_what_is_missing() -> None:
    plain = guest("plain", None, CpuSet({0}))
    spent = {"a": HALF, "plain": (CpuTime(5.0, 5.0),)}
    for ran, kinds in ((5.0, {"untiered"}), (2.0, {"untiered", "busy"})):
        spent["plain"] = (CpuTime(ran, 5.0),)
        load = HostLoad(busy=(process("8", 0.3, {0}),))
        kernel = cgroups(a=100, plain=100)
        host = evidence(GUEST, plain, found=kernel, spent=spent, load=load, shares=200)
        found_now = {kind for kind, where, _ in summary(host) if where != "guest plain"}
        assert found_now - {"short", "oversold"} == kinds


def test_a_slice_of_equal_weight_on_a_cpu_that_few_guests_use() -> None:
    """100 of 3100 shares are on CPU 0: 33 of the 1024 of the guests' slice."""
    light, heavy = guest("light", 100, CpuSet({0})), guest("heavy", 3000, CpuSet({1}))
    service = replace(process("8", 0.97, {0}), cgroup="/service/x")
    above = {"/machine.slice": 1024, "/service": 1024}
    kernel = cgroups(version=1, above=above, light=100, heavy=3000)
    spent = {"light": (CpuTime(0.3, 9.7),), "heavy": FULL}
    load = HostLoad(busy=(service,))
    host = evidence(light, heavy, found=kernel, spent=spent, load=load, shares=3200)
    (text,) = (text for kind, _, text in summary(host) if kind == "busy")
    assert text.endswith(
        "; its slice /service has weight 1024, and /machine.slice has 33.03 of its 1024 on these"
        " CPUs"
    )
