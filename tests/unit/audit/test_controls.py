"""Quotas, cpu.idle, weights inside of guests, and cgroups beside guests."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from cpu_tiers.tools.tiers.domain import HostCgroups, Version
from tests.unit.audit.hosts import cgroups, evidence, guest, summary

GUEST = guest("a", 100)
SCOPE = "/machine.slice/a.scope"
VCPU = f"{SCOPE}/libvirt/vcpu0"


@pytest.mark.parametrize(
    ("path", "where", "ends"),
    [
        pytest.param(SCOPE, "guest a", ", its XML has no quota", id="of the guest"),
        pytest.param(VCPU, "guest a", ", its XML has no quota", id="of a vCPU"),
        pytest.param("/machine.slice", "cgroup /machine.slice", "", id="of all guests"),
    ],
)
def test_a_quota_that_no_flavor_requests(path: str, where: str, ends: str) -> None:
    kernel = cgroups(a=100, parts={"quotas": {path: (20_000, 100_000)}})
    text = f"cgroup {path} has a quota of 20000 us in each 100000 us{ends}"
    assert summary(evidence(GUEST, found=kernel)) == [("quota", where, text)]


@pytest.mark.parametrize(
    ("path", "element"),
    [
        (SCOPE, "global_quota"),
        (VCPU, "quota"),
        (f"{SCOPE}/libvirt/emulator", "emulator_quota"),
        (f"{SCOPE}/libvirt/iothread12", "iothread_quota"),
    ],
)
def test_a_quota_of_the_flavor_is_right(path: str, element: str) -> None:
    kernel = cgroups(a=100, parts={"quotas": {path: (20_000, 100_000)}})
    limited = replace(GUEST, quotas={element: 20_000})
    assert summary(evidence(limited, found=kernel)) == []
    other = replace(GUEST, quotas={element: 50_000})
    ((kind, _, text),) = summary(evidence(other, found=kernel))
    assert (kind, text.endswith("its XML has a quota of 50000 us")) == ("quota", True)


@pytest.mark.parametrize(
    ("path", "where"), [(SCOPE, "guest a"), (VCPU, "guest a"), ("/machine.slice", None)]
)
def test_an_idle_cgroup(path: str, where: str | None) -> None:
    # the kernel shows the weight 0 of an idle cgroup in v2
    inner = {"libvirt/vcpu0": 0 if path == VCPU else 100}
    kernel = cgroups(a=100, of_guests={"inner_weights": inner}, parts={"idle": frozenset({path})})
    assert summary(evidence(GUEST, found=kernel)) == [
        ("idle", where or f"cgroup {path}", f"cgroup {path} has cpu.idle 1")
    ]


@pytest.mark.parametrize(
    ("version", "inner", "text"),
    [
        (2, {"emulator": 100, "vcpu0": 100}, ""),
        (1, {"emulator": 1024, "vcpu0": 1024}, ""),
        (
            1,
            {"vcpu0": 2, "vcpu1": 1024, "emulator": 5000},
            "in its cgroup emulator has weight 5000, vcpu0 has weight 2; the default weight is"
            " 1024",
        ),
    ],
)
def test_weights_inside_of_a_guest(version: Version, inner: Mapping[str, int], text: str) -> None:
    kernel = cgroups(version, a=100, of_guests={"inner_weights": inner})
    found = summary(evidence(GUEST, found=kernel))
    assert found == ([("inner-weight", "guest a", text)] if text else [])


def test_a_cgroup_beside_the_guests() -> None:
    beside = {"beside": {"/machine.slice/foreign": 10_000}}
    other = guest("b", 50)
    assert summary(evidence(GUEST, other, found=cgroups(a=100, b=50, parts=beside))) == [
        (
            "foreign",
            "cgroup /machine.slice/foreign",
            "it contains no guest and has weight 10000; the 2 guests in /machine.slice have weight"
            " 150 together",
        )
    ]


def in_partition(weight: int) -> HostCgroups:
    """Gold beside a partition with a guest of weight 25, in cgroup v1."""
    found = cgroups(version=1, gold=100, tenant=25)
    partition = "/machine.slice/tenant.partition"
    tenant = replace(found.guests["tenant-uuid"], path=f"{partition}/tenant.scope")
    return replace(
        found,
        guests={**found.guests, "tenant-uuid": tenant},
        above={**found.above, partition: weight},
    )


def test_a_partition_beside_guests_has_the_weight_of_its_guests_or_is_found() -> None:
    guests = (guest("gold", 100), guest("tenant", 25))
    host = evidence(*guests, found=in_partition(1024), shares=600)
    assert summary(host) == [
        (
            "oversold",
            "host",
            "1124 shares compete for CPU time, and the host sells 600: on a busy host a share"
            " keeps 53.4% of what it is sold as, servers with a tier have 1124",
        ),
        (
            "partition",
            "cgroup /machine.slice/tenant.partition",
            "it has weight 1024 beside guests, and its guests have weight 25 together",
        ),
    ]


def test_weights_along_the_whole_path() -> None:
    found = in_partition(1024)
    other = replace(
        found.guests["tenant-uuid"], path="/machine.slice/tenant.partition/o.scope", weight=75
    )
    found = replace(found, guests={**found.guests, "other-uuid": other})
    # 25 and 75 divide the 1024 of the partition
    assert found.competing_weights() == {
        "gold-uuid": 100,
        "tenant-uuid": 256,
        "other-uuid": 768,
    }
    # a partition with no guest beside it has nobody to compete with
    alone = replace(found, guests={k: g for k, g in found.guests.items() if k != "gold-uuid"})
    assert alone.competing_weights() == {"tenant-uuid": 25, "other-uuid": 75}


def test_with_cpu_idle_the_weight_is_no_finding_of_its_own() -> None:
    found = cgroups(a=0, parts={"idle": frozenset({"/machine.slice/a.scope"})})
    assert [kind for kind, *_ in summary(evidence(guest("a", 100), found=found))] == ["idle"]
