"""Keys of NUMA nodes without effect, and flavors with more nodes."""

import pytest

from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.extra_specs.numa_advice import divided, idle_keys
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image

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
