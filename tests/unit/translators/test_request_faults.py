"""The faults of a new server: of its keys, and of its request groups."""

from typing import Any

import pytest

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import node_faults, request_faults

GROUPS = {"resources1:CUSTOM_A": "1", "resources2:CUSTOM_B": "1"}


@pytest.mark.parametrize(
    ("specs", "faulty"),
    [
        pytest.param({}, [], id="nothing"),
        pytest.param({"quota:cpu_shares_multiplier": "100"}, [], id="a tier"),
        pytest.param({**GROUPS, "group_policy": "none"}, [], id="two groups and their policy"),
        pytest.param(GROUPS, ["group_policy"], id="two groups without a policy"),
        pytest.param({"quota:cpu_shares": "20000"}, ["quota:cpu_shares"], id="shares, once"),
        pytest.param(
            {**GROUPS, "quota:cpu_shares": "0", "hw:numa_nodes": "0"},
            ["hw:numa_nodes", "quota:cpu_shares", "group_policy"],
            id="faults of keys and of groups",
        ),
    ],
)
def test_faults(specs: dict[str, Any], faulty: list[str]) -> None:
    faults = request_faults(
        ServerRequest(Flavor(name="f", vcpus=2, memory_mb=2048, extra_specs=specs))
    )
    assert len(faults) == len(faulty)
    for fault, key in zip(faults, faulty, strict=True):
        assert key in str(fault)


BESIDE = {"resources:MEMORY_MB": "1024"}
NODES = {"hw:numa_nodes": "2"}


@pytest.mark.parametrize(
    ("specs", "faulty"),
    [
        pytest.param(BESIDE, [], id="no nodes"),
        pytest.param({**BESIDE, **NODES}, ["1024, but its NUMA nodes have 2048"], id="an amount"),
        pytest.param({**NODES, "hw:mem_page_size": "1GB"}, [], id="1 GiB for each of 2 nodes"),
        pytest.param(
            {**BESIDE, "hw:mem_page_size": "3MB"},
            ["page size", "1024, but its NUMA nodes have 2048"],
            id="one node because of its pages, of 2048 MiB",
        ),
        # A server without VCPU and MEMORY_MB goes to any host, also with the query for nodes.
        pytest.param(
            {"resources:VCPU": "0", "resources:MEMORY_MB": "0", "resources_1:CUSTOM_BM": "1"},
            [],
            id="bare metal",
        ),
    ],
)
def test_faults_of_nodes_need_the_query_for_nodes(
    specs: dict[str, str], faulty: list[str]
) -> None:
    server = ServerRequest(Flavor(name="f", vcpus=2, memory_mb=2048, extra_specs=specs))
    keys = request_faults(server)
    faults = request_faults(server._replace(query_numa=True))
    assert len(faults) == len(faulty)
    for fault, text in zip(faults, faulty, strict=True):
        assert text in str(fault)
    assert set(faults) == {*keys, *node_faults(server)}
