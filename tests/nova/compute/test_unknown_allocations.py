"""Placement does not answer requests of cpu-tiers in nova-compute: nothing of Nova's is lost.

No services: only the faults are of interest.
"""

import pytest

from cpu_tiers.nova.compute.numa import numa_inventory
from tests.nova.compute.reports import NO_ALLOCATIONS, SHARES, host_report, record


@pytest.mark.parametrize("fault", NO_ALLOCATIONS)
def test_a_vanished_node_stays(fault: Exception) -> None:
    nodes = {"one": {"VCPU": record(8)}, "one_NUMA1": {SHARES: record(800)}}
    host = host_report(nodes, in_placement=fault)
    numa_inventory.drop_vanished(host, present=())
    assert host.tree.exists("one_NUMA1")
