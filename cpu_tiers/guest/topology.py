"""The NUMA topology of a guest, its dedicated vCPUs and its overhead in host CPUs.

Specs: use-pcpu-vcpu-in-one-instance, "Data model impact" and "REST API
impact"; libvirt-emulator-threads-policy, "Proposed change". Pure.
"""

from cpu_tiers.extra_specs.guest_cpus import GuestCpus
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import GuestCell, GuestTopology


def guest_topology(cpus: GuestCpus) -> GuestTopology | None:
    """Return the NUMA topology of a guest, or ``None`` if the guest has none.

    As in Nova, a guest has a topology if its flavor or image asks for NUMA nodes, a page size,
    persistent memory or dedicated vCPUs.
    """
    # guest_cpus makes a node for a guest with a page size or dedicated vCPUs and without nodes.
    if not cpus.nodes:
        return None
    return GuestTopology(
        cells=tuple(
            GuestCell(
                id=number,
                cpuset=CpuSet(node.cpus - cpus.dedicated),
                pcpuset=CpuSet(node.cpus & cpus.dedicated),
                memory_mb=node.memory_mb,
            )
            for number, node in enumerate(cpus.nodes)
        ),
        cpu_policy=cpus.policy,
        cpu_thread_policy=cpus.thread_policy,
        emulator_threads_policy=cpus.emulator_threads,
        page_size=cpus.page_size,
        realtime=cpus.realtime,
    )


def dedicated_cpus(topology: GuestTopology | None) -> str:
    """Return the dedicated vCPUs in the format of the metadata API: ``2,7``.

    The text is empty if no vCPU is dedicated.
    """
    cells = () if topology is None else topology.cells
    return str(CpuSet(cpu for cell in cells for cpu in cell.pcpuset))


def host_cpu_overhead(topology: GuestTopology | None) -> int:
    """Return how many host CPUs a guest needs beside its vCPUs, for emulator threads."""
    isolated = topology is not None and topology.emulator_threads_policy == "isolate"
    return int(isolated)
