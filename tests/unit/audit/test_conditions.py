from dataclasses import replace

import pytest

from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.tools.tiers.domain import Version
from tests.unit.audit.hosts import SHARED, cgroups, evidence, guest, summary

PINNED = guest("pinned", 100, CpuSet({2}))
FLOATS = guest("floats", 100, SHARED)
EVERYWHERE = guest("everywhere", 100, None)


def test_a_dedicated_cpu_of_two_guests() -> None:
    assert summary(evidence(PINNED, FLOATS)) == []
    found = "pinned to CPU 2, on which everywhere, twin may run"
    twin = guest("twin", 100, CpuSet({2}))
    assert ("shared-cpu", "guest pinned", found) in summary(evidence(PINNED, EVERYWHERE, twin))


def test_a_set_of_a_single_shared_cpu_is_not_dedicated() -> None:
    assert summary(evidence(guest("one", 100, CpuSet({0})), FLOATS)) == []


def test_every_cpu_is_both_without_sets_in_nova_conf() -> None:
    pinned = guest("pinned", 100, CpuSet({0}))
    found = summary(evidence(pinned, FLOATS, dedicated=CpuSet(range(4))))
    assert [one[:2] for one in found] == [("shared-cpu", "guest pinned")]


@pytest.mark.parametrize(
    ("above", "found"),
    [
        ({"/machine.slice": 100, "/system.slice": 100, "/user.slice": 20}, []),
        (
            {"/machine.slice": 50, "/system.slice": 100, "/user.slice": 50},
            [
                "the guests' cgroup has weight 50, its sibling /system.slice has weight 100",
            ],
        ),
    ],
)
def test_the_weight_of_machine_slice(above: dict[str, int], found: list[str]) -> None:
    host = evidence(FLOATS, found=cgroups(above=above, floats=100))
    assert summary(host) == [("outweighed", "cgroup /machine.slice", text) for text in found]


@pytest.mark.parametrize(
    ("version", "weight", "default"),
    [
        pytest.param(1, 2, 1024, id="the least weight of v1"),
        pytest.param(1, 1023, 1024, id="just below"),
        pytest.param(1, 1024, None, id="the default of v1"),
        pytest.param(2, 1, 100, id="the least weight of v2"),
        pytest.param(2, 100, None, id="the default of v2"),
        pytest.param(2, 900, None, id="more"),
    ],
)
def test_a_light_partition_without_a_neighbor(
    version: Version, weight: int, default: int | None
) -> None:
    """Processes of the root cgroup have the default weight."""
    found = cgroups(version, above={"/machine.slice": weight}, floats=100)
    text = (
        f"the guests' cgroup has weight {weight}, a process beside it, in /, has weight {default}"
    )
    expected = [("outweighed", "cgroup /machine.slice", text)] if default else []
    assert summary(evidence(FLOATS, found=found)) == expected


def test_a_partition_in_a_partition() -> None:
    above = {"/machine.slice": 100, "/machine.slice/gold.slice": 2}
    found = cgroups(above=above, floats=100)
    inner = replace(found.guests["floats-uuid"], path="/machine.slice/gold.slice/floats.scope")
    found = replace(found, guests={"floats-uuid": inner})
    text = (
        "the guests' cgroup has weight 2, a process beside it, in /machine.slice, has weight 100"
    )
    assert summary(evidence(FLOATS, found=found)) == [
        ("outweighed", "cgroup /machine.slice/gold.slice", text)
    ]


def test_an_idle_partition_is_a_single_finding() -> None:
    idle = {"idle": frozenset({"/machine.slice"})}
    found = cgroups(above={"/machine.slice": 0}, parts=idle, floats=100)
    assert [one[:2] for one in summary(evidence(FLOATS, found=found))] == [
        ("idle", "cgroup /machine.slice")
    ]


def test_a_scheduler_that_ignores_weights() -> None:
    host = evidence(FLOATS, found=cgroups(floats=100, sched_ext="scx_lavd"))
    assert summary(host) == [("scheduler", "host", "the BPF scheduler scx_lavd is loaded")]


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        pytest.param(0, [], id="SCHED_OTHER"),
        pytest.param(3, [], id="SCHED_BATCH"),
        pytest.param(5, [("scheduler", "thread 'CPU 0/KVM' is SCHED_IDLE")], id="SCHED_IDLE"),
        pytest.param(7, [("scheduler", "thread 'CPU 0/KVM' is SCHED_EXT")], id="SCHED_EXT"),
        pytest.param(
            1,
            [("real-time", "thread 'CPU 0/KVM' is SCHED_FIFO, on CPUs that other guests use")],
            id="SCHED_FIFO",
        ),
    ],
)
def test_policies_of_threads(policy: int, found: list[tuple[str, str]]) -> None:
    kernel = cgroups(floats=100, policies={"CPU 0/KVM": policy})
    host = evidence(FLOATS, guest("beside", 100), found=kernel)
    assert summary(host) == [(kind, "guest floats", text) for kind, text in found]


def test_a_real_time_vcpu_alone_on_a_cpu_is_no_finding() -> None:
    kernel = cgroups(pinned=100, policies={"CPU 0/KVM": 1})
    assert summary(evidence(PINNED, FLOATS, found=kernel)) == []


def test_a_frozen_guest() -> None:
    found = cgroups(floats=100, of_guests={"is_frozen": True})
    text = "its cgroup /machine.slice/floats.scope is frozen"
    assert summary(evidence(guest("floats", 100), found=found)) == [
        ("frozen", "guest floats", text)
    ]


def test_vcpus_that_float_over_isolated_cpus() -> None:
    found = cgroups(wide=100, pinned=100, parts={"isolated": CpuSet({1, 2, 3})})
    guests = (guest("wide", 100), guest("pinned", 100, CpuSet({1})))
    rows = summary(evidence(*guests, found=found))
    # A vCPU with a single CPU is never moved anyway.
    assert ("isolated", "CPU 1", "vCPUs of wide float over these isolated CPUs") in rows
    assert [kind for kind, *_ in summary(evidence(guests[1], found=found))] == []
