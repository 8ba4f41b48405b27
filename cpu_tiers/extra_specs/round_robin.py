"""Distributes the shared vCPUs of a mixed guest over its NUMA nodes.

The spec use-pcpu-vcpu-in-one-instance, "Create mixed instance via resources:PCPU
and resources:VCPU", demands round robin, with VCPU before PCPU. Pure.
"""

from collections.abc import Sequence

from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.model.cpu_set import CpuSet


def shared_round_robin(nodes: Sequence[GuestNode], shared: int) -> CpuSet:
    """Return the shared vCPUs. In each round, every node makes its lowest vCPU shared.

    A node whose vCPUs are all shared is skipped, so that the rounds go on for nodes
    of unequal size.

    :param shared: the number of shared vCPUs, less than the vCPUs of all nodes.
    """
    dedicated = [sorted(node.cpus, reverse=True) for node in nodes]
    chosen: list[int] = []
    while len(chosen) < shared:
        dedicated = [cpus for cpus in dedicated if cpus]
        chosen += [cpus.pop() for cpus in dedicated[: shared - len(chosen)]]
    return CpuSet(chosen)
