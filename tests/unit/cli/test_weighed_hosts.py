"""What Nova's weighers compare, worked out by hand from a snapshot."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.tools.cloud.weighed_hosts import WeighedHosts, weighed_hosts
from cpu_tiers.tools.cloud_model.host_aggregates import HostAggregates
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.frame.cloud_source import CloudSource
from cpu_tiers.tools.placement.explanation import explain
from cpu_tiers.tools.placement.snapshot_client import SnapshotClient
from cpu_tiers.tools.room.server_queries import Request
from tests.unit.cloud_model.clouds import group, provider, query
from tests.unit.compute_api.catalog import Catalog

HOST = provider("a", None, VCPU=4, PCPU=2, MEMORY_MB=100, DISK_GB=3)


def weighed(*names: str) -> WeighedHosts:
    """Return the values of hosts with a ratio of 2.0, each with a server of 3 CPUs, one pinned."""
    cpus = Inventory(total=4, max_unit=4, allocation_ratio=2.0)
    inventories = {**HOST.inventories, "VCPU": cpus}
    hosts = [replace(HOST, uuid=name, name=name, inventories=inventories) for name in names]
    held = {name: {name: {"VCPU": 2, "PCPU": 1, "MEMORY_MB": 30}} for name in names}
    client = SnapshotClient(Snapshot(providers=tuple(hosts), consumers=held))
    placement: Any = nullcontext(client)
    cloud = CloudSource(Catalog({}).services, lambda: placement, None)
    explanation = explain(client, Request((query(group(VCPU=1)),)))
    return weighed_hosts(cloud, client, explanation)


def test_the_free_amounts_of_a_single_host_which_nova_does_not_weigh() -> None:
    found = weighed("a")
    # 4 x 2.0 - 2 - 1: a dedicated CPU is no CPU of the CPU weigher, and a pinned vCPU is used.
    assert found.values["cpu"] == {"a": 5.0}
    assert found.values["ram"] == {"a": 70.0}
    assert found.unknown == ()


@pytest.mark.parametrize("weigher", ["cpu", "ram"])
def test_several_hosts_by_the_states_that_nova_computes_report(weigher: str) -> None:
    found = weighed("a", "b")
    assert found.values[weigher] == dict.fromkeys("ab", {"cpu": 5.0, "ram": 70.0}[weigher])
    assert len(found.unknown) == 1


def test_unknown_aggregates_are_said_first() -> None:
    assert WeighedHosts({}, HostAggregates(unknown="refused")).left_out
    assert WeighedHosts({}).left_out == []
