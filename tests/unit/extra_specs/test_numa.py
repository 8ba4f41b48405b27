"""The NUMA nodes of a guest of 8 vCPUs and 3072 MiB."""

import pytest

from cpu_tiers.errors import ConflictingExtraSpecs, InvalidInput
from cpu_tiers.extra_specs.numa import (
    MAX_LISTED,
    asks_for_nodes,
    guest_nodes,
    node_count,
)
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor, Image

CPUS = {"hw:numa_cpus.0": "0-2", "hw:numa_cpus.1": "3-7"}
MEMORY = {"hw:numa_mem.0": "1024", "hw:numa_mem.1": "2048"}
OF_IMAGE = {key.replace(":", "_"): value for key, value in {**CPUS, **MEMORY}.items()}


def flavor(specs: dict[str, str], vcpus: int = 8, memory_mb: int = 3072) -> Flavor:
    return Flavor(name="f", vcpus=vcpus, memory_mb=memory_mb, extra_specs=specs)


def nodes(
    specs: dict[str, str], count: int, properties: dict[str, str] | None = None, vcpus: int = 8
) -> list[tuple[str, int]]:
    image = None if properties is None else Image(name="i", properties=properties)
    every = CpuSet(range(vcpus))
    guest = guest_nodes(flavor(specs, vcpus), image, count, every)
    return [(str(node.cpus), node.memory_mb) for node in guest]


@pytest.mark.parametrize("text", ["1", "2", "128", "999999"])
def test_the_number_of_nodes(text: str) -> None:
    assert node_count(flavor({"hw:numa_nodes": text}), None) == int(text)
    assert node_count(flavor({}), Image(name="i", properties={"hw_numa_nodes": text})) == int(text)


def test_without_keys_the_node_count_is_none() -> None:
    assert node_count(flavor({}), Image(name="i")) is None
    assert not asks_for_nodes(flavor(CPUS), None)


@pytest.mark.parametrize("text", ["", "0", "01", "-1", "+1", " 1", "1.0", "1000000", "two", "²"])
def test_numbers_that_are_refused(text: str) -> None:
    it = flavor({"hw:numa_nodes": text})
    assert asks_for_nodes(it, None)  # it asks, if not for a number
    with pytest.raises(InvalidInput, match="give a whole number from 1 to 999999"):
        node_count(it, None)


def test_flavor_and_image_both_set_the_number() -> None:
    image = Image(name="i", properties={"hw_numa_nodes": "2"})
    with pytest.raises(ConflictingExtraSpecs, match="set it in the flavor or in the image"):
        node_count(flavor({"hw:numa_nodes": "2"}), image)


@pytest.mark.parametrize(
    ("specs", "count", "expected"),
    [
        pytest.param({}, 1, [("0-7", 3072)], id="one node has all"),
        pytest.param({}, 2, [("0-3", 1536), ("4-7", 1536)], id="8 / 2 vCPUs, 3072 / 2 MiB"),
        pytest.param(CPUS | MEMORY, 2, [("0-2", 1024), ("3-7", 2048)], id="described"),
        pytest.param(CPUS, 2, [("0-2", 1536), ("3-7", 1536)], id="only CPUs: 3072 / 2 MiB"),
        pytest.param(
            {"hw:numa_cpus.0": "7", "hw:numa_cpus.1": "^7,0-6"},
            2,
            [("7", 1536), ("0-6", 1536)],
            id="in any order, with an exclusion",
        ),
    ],
)
def test_nodes(specs: dict[str, str], count: int, expected: list[tuple[str, int]]) -> None:
    assert nodes(specs, count) == expected


def test_nodes_of_the_image() -> None:
    assert nodes({}, 2, OF_IMAGE) == [("0-2", 1024), ("3-7", 2048)]


@pytest.mark.parametrize(
    ("specs", "properties", "message"),
    [
        (
            {"hw:numa_mem.1": "1024", "hw:numa_mem.2": "2048"},
            None,
            "flavor f, extra spec hw:numa_mem.1: there is no hw:numa_mem.0",
        ),
        (
            MEMORY,
            {"hw_numa_cpus.1": "0-2", "hw_numa_cpus.2": "3-7"},
            "image i, property hw_numa_cpus.1: there is no hw_numa_cpus.0",
        ),
    ],
)
def test_nodes_that_are_not_numbered_from_0(
    specs: dict[str, str], properties: dict[str, str] | None, message: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        nodes(specs, 2, properties)
    assert str(caught.value) == f"{message}; number the nodes from 0"


def test_no_more_nodes_are_described_than_in_nova() -> None:
    specs = {f"hw:numa_cpus.{n}": str(n) for n in range(MAX_LISTED + 1)}
    with pytest.raises(InvalidInput, match=f"hw:numa_cpus.N of {MAX_LISTED} nodes"):
        nodes(specs, MAX_LISTED + 1, vcpus=MAX_LISTED + 1)


@pytest.mark.parametrize(
    ("specs", "count", "message"),
    [
        pytest.param({}, 3, "8 vCPUs and 3072 MiB; nodes of unequal size", id="8 / 3"),
        pytest.param({}, 999999, "nodes of unequal size", id="more nodes than vCPUs"),
        pytest.param(CPUS | MEMORY, 3, "of 2 nodes and", id="3 nodes, 2 are described"),
        pytest.param(MEMORY, 2, "of 0 nodes and hw:numa_mem.N of 2", id="memory without CPUs"),
        pytest.param(
            CPUS | {"hw:numa_mem.1": "2048"}, 2, "there is no hw:numa_mem.0", id="mem.0 is missing"
        ),
        pytest.param(CPUS | MEMORY | {"hw:numa_mem.0": "0"}, 2, "give MiB", id="0 MiB"),
        pytest.param(CPUS | MEMORY | {"hw:numa_mem.0": "1e3"}, 2, "give MiB", id="no number"),
        pytest.param(
            CPUS | MEMORY | {"hw:numa_mem.0": "9999999999"}, 2, "10000002047 MiB", id="too much"
        ),
        pytest.param(CPUS | {"hw:numa_cpus.0": "0-3"}, 2, "vCPUs 3 are in another", id="3 twice"),
        pytest.param(
            CPUS | {"hw:numa_cpus.0": "0,1"}, 2, "no node has the vCPUs 2", id="2 missing"
        ),
        pytest.param(CPUS | {"hw:numa_cpus.1": "3-8"}, 2, "the server has the vCPUs", id="no 8"),
    ],
)
def test_nodes_that_do_not_make_up_the_flavor(
    specs: dict[str, str], count: int, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        nodes(specs, count)


def test_memory_that_cannot_be_divided() -> None:
    with pytest.raises(InvalidInput, match="3073 MiB; memory that cannot be divided evenly"):
        guest_nodes(flavor(CPUS, memory_mb=3073), None, 2, CpuSet(range(8)))


def test_flavor_and_image_both_describe_nodes() -> None:
    with pytest.raises(ConflictingExtraSpecs) as caught:
        nodes(CPUS | MEMORY, 2, OF_IMAGE)
    assert [fault.given for fault in caught.value.faults] == [
        "the image has hw_numa_cpus, too",
        "the image has hw_numa_mem, too",
    ]
