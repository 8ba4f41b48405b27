"""Shared vCPUs of a mixed guest, dealt to its NUMA nodes.

Spec: use-pcpu-vcpu-in-one-instance, "Create mixed instance via resources:PCPU
and resources:VCPU": round robin, VCPU ahead of PCPU. Pure.
"""

from collections.abc import Sequence

from cpu_tiers.extra_specs.numa import GuestNode
from cpu_tiers.model.cpu_set import CpuSet


def shared_round_robin(nodes: Sequence[GuestNode], shared: int) -> CpuSet:
    """Return the shared vCPUs: dealt one at a time to each node in turn.

    A node takes them from its lowest vCPU on, and is passed over when all of
    its vCPUs are shared, so nodes of unequal size do not stop the deal.

    :param shared: how many there are, fewer than the nodes have vCPUs.
    """
    waiting = [sorted(node.cpus, reverse=True) for node in nodes]
    dealt: list[int] = []
    while len(dealt) < shared:
        waiting = [cpus for cpus in waiting if cpus]
        dealt += [cpus.pop() for cpus in waiting[: shared - len(dealt)]]
    return CpuSet(dealt)
