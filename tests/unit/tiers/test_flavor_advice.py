"""Keys without effect, misspelt keys, and flavors with more NUMA nodes."""

import pytest

from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.tiers.flavor_advice import (
    KEYS,
    divided,
    idle_keys,
    misspelt_keys,
    remedy_of_uncounted_nodes,
    sells_nodes,
)


def advice(*keys: str) -> list[str]:
    flavor = Flavor(name="f", vcpus=1, memory_mb=1, extra_specs=dict.fromkeys(keys, "1"))
    return [fault.allowed for fault in misspelt_keys(flavor)]


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("quota:cpu_share_multiplier", "quota:cpu_shares_multiplier"),
        ("quota:cpu_shares_multiplyer", "quota:cpu_shares_multiplier"),
        ("hw:cpu_dedicatd_mask", "hw:cpu_dedicated_mask"),
        ("hw:numa_cpu.1", "hw:numa_cpus.1"),
        ("hw:numa_mems.0", "hw:numa_mem.0"),
        ("hw:cpu_realtime_masks", "hw:cpu_realtime_mask"),
        ("hw:emulator_thread_policy", "hw:emulator_threads_policy"),
        ("os:secureboot", "os:secure_boot"),
    ],
)
def test_the_key_that_was_meant(key: str, meant: str) -> None:
    assert advice(key) == [f"did you mean {meant}?"]


def test_a_key_without_a_near_name() -> None:
    assert advice("hw:tachyons", "hw:") == ["remove the key", "remove the key"]


@pytest.mark.parametrize(
    "key",
    [
        *("aggregate_instance_extra_specs:cpu_polcy", "capabilities:boot_mode", "hw", "ssd"),
        *("quotas:cpu_shares", "mycloud:cpu_shares_multiplyer", "group_polcy", "resource:VCPU"),
        *("hw:numa_cpus.0", "hw:numa_mem.127", "quota:cpu_shares", "hw:cpu_emulator_threads"),
    ],
)
def test_keys_that_are_left_alone(key: str) -> None:
    assert advice(key) == []


def test_every_known_key_is_known() -> None:
    assert advice(*(key.replace(".N", ".3") for key in KEYS)) == []


CPUS = {"hw:numa_cpus.0": "0-2", "hw:numa_cpus.1": "3-7"}


def flavor(specs: dict[str, str]) -> Flavor:
    return Flavor(name="f", vcpus=12, memory_mb=3072, extra_specs=specs)


def test_keys_that_describe_no_node() -> None:
    node = GuestNode(CpuSet({0}), 1024)
    assert list(idle_keys(flavor(CPUS), [node, node])) == []
    assert [str(fault) for fault in idle_keys(flavor(CPUS), [node])] == [
        "flavor f, extra spec hw:numa_cpus.1: no effect on a server of 1 NUMA nodes, numbered"
        " from 0; correct hw:numa_nodes, or remove the key"
    ]
    assert [str(fault) for fault in idle_keys(flavor(CPUS), [])] == [
        f"flavor f, extra spec hw:numa_cpus.{number}: no effect on a server of 0 NUMA nodes,"
        " numbered from 0; correct hw:numa_nodes, or remove the key"
        for number in (0, 1)
    ]


def test_a_flavor_in_more_nodes() -> None:
    """5 nodes would not divide 12 vCPUs."""
    found = list(divided(flavor({"a": "b"}), None, 6))
    assert [count for count, _ in found] == [2, 3, 4, 6]
    assert found[0][1].extra_specs == {"a": "b", "hw:numa_nodes": "2"}
    assert list(divided(flavor({}), None, 1)) == []


@pytest.mark.parametrize(
    ("specs", "image"),
    [
        ({"hw:numa_nodes": "1"}, None),
        ({}, Image(name="i", properties={"hw_numa_nodes": "1"})),
    ],
)
def test_a_number_of_nodes_that_is_given(specs: dict[str, str], image: Image | None) -> None:
    assert list(divided(flavor(specs), image, 4)) == []


TIER = {"quota:cpu_shares_multiplier": "100"}


@pytest.mark.parametrize(
    ("specs", "expected"),
    [
        pytest.param({"hw:numa_nodes": "1"}, True, id="a node"),
        pytest.param({"hw:mem_page_size": "large"}, True, id="huge pages make a node"),
        pytest.param({"hw:pmem": "6GB"}, True, id="so does persistent memory"),
        pytest.param({"hw:cpu_policy": "mixed", "hw:cpu_dedicated_mask": "0"}, True, id="mixed"),
        pytest.param({"hw:cpu_policy": "dedicated"}, False, id="no shared vCPU"),
        pytest.param({}, False, id="floats over the host"),
        pytest.param(
            {"hw:numa_nodes": "1", "quota:cpu_shares_multiplier": "x"}, False, id="faults"
        ),
        pytest.param({"hw:numa_nodes": "x"}, False, id="a fault of the nodes"),
    ],
)
def test_flavors_whose_servers_are_sold_cpus_of_nodes(
    specs: dict[str, str], expected: bool
) -> None:
    flavor = Flavor(name="f", vcpus=2, memory_mb=2048, extra_specs=TIER | specs)
    assert sells_nodes(flavor) is expected
    assert not sells_nodes(flavor._replace(extra_specs={"hw:numa_nodes": "1"}))


def test_the_remedy_without_the_driver_of_cpu_tiers_needs_none_of_its_options() -> None:
    assert "enable_numa" in remedy_of_uncounted_nodes(has_driver=True)
    assert remedy_of_uncounted_nodes(has_driver=False).endswith("with a single NUMA node")
