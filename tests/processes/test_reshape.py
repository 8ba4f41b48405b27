"""A host with servers starts to report its NUMA nodes: the allocations move once."""

import re

from cpu_tiers.model.names import (
    DISK_GB,
    MEMORY_MB,
    NUMA_SERVER,
    PCPU,
    VCPU,
    VCPU_SHARES,
)
from tests.nova.numa.agreement import check_agreement
from tests.processes.cloud import Cloud
from tests.processes.hosts import TWO_NODES, aware

HOST = "late"


def reshapes(cloud: Cloud) -> int:
    """Return the number of reshapes in the log of Placement."""
    log = (cloud.control.services.folder / "placement.log").read_text()
    return len(re.findall(r'"POST /reshaper" status: 204', log))


def test_servers_move_to_the_nodes_once(cloud: Cloud) -> None:
    """nova-scheduler is not restarted, and places the next server on the new nodes."""
    cloud.start_compute(HOST, aware(None), env=TWO_NODES)
    two = {"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"}
    pinned = cloud.boot(cloud.flavor(two, vcpus=4), host=HOST)
    bronze = {"quota:cpu_shares_multiplier": "25"}
    plain = cloud.boot(cloud.flavor(bronze, vcpus=2), host=HOST)
    assert cloud.held(pinned) == {HOST: {PCPU: 4, MEMORY_MB: 512, DISK_GB: 1}}
    assert cloud.held(plain) == {HOST: {VCPU: 2, MEMORY_MB: 512, DISK_GB: 1, VCPU_SHARES: 50}}
    before = reshapes(cloud)
    for _ in range(2):
        cloud.restart_compute(HOST, aware(True))
        assert reshapes(cloud) == before + 1
        assert {*check_agreement(cloud, pinned)} == {(HOST, 0), (HOST, 1)}
        (node,) = cloud.held(plain).keys() & {f"{HOST}_NUMA0", f"{HOST}_NUMA1"}
        assert cloud.held(plain) == {
            HOST: {DISK_GB: 1, NUMA_SERVER: 1},
            node: {VCPU: 2, VCPU_SHARES: 50},
            f"{node}_PAGES_4": {MEMORY_MB: 512},
        }
    another = cloud.boot(cloud.flavor(two, vcpus=4), host=HOST)
    assert {*check_agreement(cloud, another)} == {(HOST, 0), (HOST, 1)}
