"""Pin 64 vCPUs on a host of 8 nodes x 64 CPUs, half of them taken, against Nova.

The cores of the host have two threads. For the guest with one node, four host nodes are empty and
four are full; for the other guests, half of the cores of each host node are taken. In the last
case the eighth guest node fits no remaining host node, so Nova tries all orders of the nodes.
Nova has to be installed (dependency group ``bench``).
"""

from __future__ import annotations  # objects.X stands there once Nova has registered it

import copy
import gc
import logging
import sys
import warnings
from collections.abc import Iterator

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of what Nova and its libraries warn when imported
    from nova import objects
    from nova.conf import CONF
    from nova.virt import hardware

    from cpu_tiers.guest.pinning import DoesNotFit, pin
    from cpu_tiers.nova.convert_numa import to_compute_host, to_guest_topology

from measure import Ratio, report, seconds

NODES, CPUS, VCPUS = 8, 64, 64
GOAL = 0.5
ROUNDS = 40


def host(*, whole_nodes: bool = False, full: int | None = None) -> objects.NUMATopology:
    """Return a host with half of its CPUs taken.

    :param whole_nodes: whether every second node is taken, in place of every second core.
    :param full: a node without free CPUs.
    """
    cells = []
    for node in range(NODES):
        cpus = range(node * CPUS, (node + 1) * CPUS)
        cores = [{cpu, cpu + CPUS // 2} for cpu in cpus[: CPUS // 2]]
        taken = cores[::2]
        if whole_nodes:
            taken = cores if node % 2 else []
        if node == full:
            taken = cores
        cells.append(
            objects.NUMACell(
                id=node,
                cpuset=set(),
                pcpuset=set(cpus),
                memory=65536,
                socket=node // 4,
                cpu_usage=0,
                memory_usage=32768,
                pinned_cpus=set().union(*taken),
                siblings=cores,
                mempages=[
                    objects.NUMAPagesTopology(size_kb=4, total=16777216, used=8388608, reserved=0)
                ],
            )
        )
    return objects.NUMATopology(cells=cells)


def guest(nodes: int) -> objects.InstanceNUMATopology:
    """Return a guest of 64 dedicated vCPUs."""
    each = VCPUS // nodes
    return objects.InstanceNUMATopology(
        cells=[
            objects.InstanceNUMACell(
                id=node,
                cpuset=set(),
                pcpuset=set(range(node * each, (node + 1) * each)),
                memory=16384 // nodes,
                pagesize=None,
                cpu_policy="dedicated",
                cpu_thread_policy=None,
                cpuset_reserved=None,
                cpu_pinning_raw=None,
            )
            for node in range(nodes)
        ],
        emulator_threads_policy=None,
    )


def ratio(what: str, theirs: objects.NUMATopology, asked: objects.InstanceNUMATopology) -> Ratio:
    """Return the time of cpu-tiers divided by the time of Nova.

    Nova edits the guest, and therefore gets a copy.
    """
    our_host, our_guest = to_compute_host(theirs), to_guest_topology(asked)
    fits = []

    def nova(instance: objects.InstanceNUMATopology) -> None:
        fits.append(hardware.numa_fit_instance_to_host(theirs, instance, {}) is not None)

    def we() -> None:
        try:
            pin(our_guest, our_host)
        except DoesNotFit:
            fits.append(False)
        else:
            fits.append(True)

    rounds = []
    for _ in range(ROUNDS):
        instance = copy.deepcopy(asked)
        gc.collect()
        rounds.append((seconds(we), seconds(lambda: nova(instance))))  # noqa: B023
    assert len(set(fits)) == 1
    mine, nova_s = (min(column) for column in zip(*rounds, strict=True))
    detail = f"{mine * 1e3:.3f} ms of {nova_s * 1e3:.3f} ms, {'fits' if fits[0] else 'refused'}"
    return Ratio(what=what, ratio=mine / nova_s, goal=GOAL, detail=detail)


def ratios() -> Iterator[Ratio]:
    """Yield the ratio of each case."""
    yield ratio("1 guest node", host(whole_nodes=True), guest(1))
    yield ratio("2 guest nodes", host(), guest(2))
    yield ratio("8 guest nodes", host(), guest(8))
    yield ratio("8 guest nodes, one host node full", host(full=7), guest(8))


if __name__ == "__main__":
    objects.register_all()
    CONF([], default_config_files=[])
    logging.disable(logging.INFO)  # a service writes them; they are not what is compared
    sys.exit(report("Pin 64 vCPUs / Nova's numa_fit_instance_to_host", ratios()))
