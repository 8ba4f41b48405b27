"""VCPU and PCPU of a host, on the root provider or on each NUMA node."""

from dataclasses import replace
from typing import Any

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory import AllocationRatio
from cpu_tiers.inventory.cpus import pinned_cpus, report, shared_cpus, vcpu_inventories
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory
from tests.unit.inventory.hosts import cell, host, options

HOST = host(cell(0, "0-3"), cell(1, "4-7"))


def cpus(text: str) -> CpuSet:
    return CpuSet.parse(text, where="")


@pytest.mark.parametrize(
    ("shared", "dedicated", "expected"),
    [
        pytest.param(None, None, "0-7", id="no set: every CPU"),
        pytest.param("1-2", None, "1-2", id="only the shared set"),
        pytest.param(None, "4-7", "", id="only the dedicated set: none"),
        pytest.param("1-2", "4-7", "1-2", id="both sets"),
    ],
)
def test_the_cpus_of_shared_vcpus(
    shared: str | None, dedicated: str | None, expected: str
) -> None:
    sets = options(
        cpu_shared_set=cpus(shared) if shared else None,
        cpu_dedicated_set=cpus(dedicated) if dedicated else None,
    )
    assert str(shared_cpus(HOST, sets)) == expected


@pytest.mark.parametrize(
    ("shared", "dedicated", "pin_set", "expected"),
    [
        pytest.param(None, None, None, "0-7", id="no set: every CPU"),
        pytest.param("1-2", None, None, "", id="only the shared set: none"),
        pytest.param("1-2", "4-7", None, "4-7", id="the dedicated set"),
        pytest.param(None, None, "2-5", "2-5", id="vcpu_pin_set"),
        pytest.param("0-1", None, "2-5", "2-5", id="vcpu_pin_set beside the shared set"),
    ],
)
def test_the_cpus_that_nova_pins_to(
    shared: str | None, dedicated: str | None, pin_set: str | None, expected: str
) -> None:
    sets = options(
        vcpu_pin_set=cpus(pin_set) if pin_set else None,
        cpu_shared_set=cpus(shared) if shared else None,
        cpu_dedicated_set=cpus(dedicated) if dedicated else None,
    )
    assert str(pinned_cpus(HOST, sets)) == expected


def test_the_older_option_decides_about_shared_cpus() -> None:
    # cpu_shared_set is then only for emulator threads, and may name CPUs that are offline
    sets = options(vcpu_pin_set=cpus("2-5"), cpu_shared_set=cpus("0-1,99"))
    assert str(shared_cpus(HOST, sets)) == "2-5"
    totals = {p.name: p.inventories["VCPU"].total for p in report(HOST, sets)}
    assert totals == {"cn_NUMA0": 2, "cn_NUMA1": 2}
    with pytest.raises(InvalidInput, match=r"\[DEFAULT\] vcpu_pin_set: .* has no CPU 9"):
        list(report(HOST, options(vcpu_pin_set=cpus("2,9"))))


def test_each_node_reports_the_cpus_of_the_node() -> None:
    sets = options(
        cpu_shared_set=cpus("0-1"),
        cpu_dedicated_set=cpus("2,4-5"),
        cpu_allocation_ratio=AllocationRatio(value=2.0),
        reserved_host_cpus=1,
    )
    assert {provider.name: provider.inventories for provider in report(HOST, sets)} == {
        "cn_NUMA0": {
            "VCPU": Inventory(total=2, max_unit=2, reserved=1, allocation_ratio=2.0),
            "PCPU": Inventory(total=1, max_unit=1),
        },
        "cn_NUMA1": {"PCPU": Inventory(total=2, max_unit=2)},
    }


def test_cpus_are_reserved_only_on_nodes_with_shared_cpus() -> None:
    # 3 CPUs of nodes with 4 and 1 shared CPUs: 2 and 1; node 2 has none
    three = host(cell(0, "0-3"), cell(1, "4-7"), cell(2, "8-11"))
    sets = options(cpu_shared_set=cpus("0-3,7"), reserved_host_cpus=3)
    inventories = vcpu_inventories(three, sets)
    reserved = {provider.name: inventory.reserved for provider, inventory in inventories}
    assert reserved == {"cn_NUMA0": 2, "cn_NUMA1": 1}


def test_every_fault_of_the_cpu_sets() -> None:
    sets = options(cpu_shared_set=cpus("0,8"), cpu_dedicated_set=cpus("0,9"))
    with pytest.raises(InvalidInput) as caught:
        list(report(HOST, sets))
    given = [fault.given for fault in caught.value.faults]
    assert given == ["host cn has no CPU 8", "host cn has no CPU 9", "CPU 0 is in both"]


POWERED_DOWN = options(
    cpu_shared_set=cpus("0-3"), cpu_dedicated_set=cpus("4-11"), cpu_power_management=True
)
"""Of a host with the CPUs 0 to 11, of which libvirt lists 0 to 7 while no server uses 8 to 11."""


def test_the_root_provider_counts_cpus_that_are_powered_down() -> None:
    sets = replace(POWERED_DOWN, enable_numa_reporting_to_placement=None)
    (root,) = report(HOST, sets)
    totals = {name: inventory.total for name, inventory in root.inventories.items()}
    assert totals == {"VCPU": 4, "PCPU": 8}  # 0-3; 4-11


@pytest.mark.parametrize(
    ("changes", "given"),
    [
        pytest.param(
            {"enable_numa_reporting_to_placement": True},
            "CPU 8-11 of host cn is powered down",
            id="the answer needs the node of each CPU",
        ),
        pytest.param({"cpu_power_management": False}, "host cn has no CPU 8-11", id="not set"),
        pytest.param(
            {"cpu_shared_set": cpus("0-3,9"), "cpu_dedicated_set": cpus("4-7")},
            "host cn has no CPU 9",
            id="Nova powers down no shared CPU",
        ),
    ],
)
def test_cpus_that_libvirt_does_not_list(changes: dict[str, Any], given: str) -> None:
    sets = replace(POWERED_DOWN, enable_numa_reporting_to_placement=None)
    with pytest.raises(InvalidInput) as caught:
        list(report(HOST, replace(sets, **changes)))
    (fault,) = caught.value.faults
    assert fault.given.startswith(given)
