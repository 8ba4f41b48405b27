"""The CPUs that shared vCPUs and emulator threads of a guest float over.

Spec: libvirt-emulator-threads-policy; decision D5. A guest without a topology
has nothing pinned: its vCPUs float over
:attr:`~cpu_tiers.model.compute.ComputeHost.cpu_shared_set`, where that is set.
"""

from collections.abc import Iterator

from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestTopology, Pinning


def shared_vcpu_cpus(pinning: CellPinning, host: ComputeHost) -> CpuSet:
    """Return the host CPUs that the shared vCPUs of one guest cell float over.

    :raises InvalidInput: the host does not have the cell.
    """
    return host.cell(pinning.host_cell).shared


def emulator_thread_cpus(guest: GuestTopology, pinning: Pinning, host: ComputeHost) -> CpuSet:
    """Return the host CPUs that the emulator threads of a guest float over.

    ``isolate``: those kept for them. ``share``: the host's ``cpu_shared_set``,
    where it is set. Else the CPUs of those vCPUs that are not real-time, or of
    all where all are, for somewhere the threads must run.

    :raises InvalidInput: the host lacks a cell that the guest is pinned to.
    """
    if guest.emulator_threads_policy == "isolate":
        return CpuSet(frozenset().union(*(cell.cpuset_reserved for cell in pinning.cells)))
    if guest.emulator_threads_policy == "share" and host.cpu_shared_set:
        return host.cpu_shared_set
    of_vcpus = dict(_cpus_of_vcpus(guest, pinning, host))
    others = [cpus for vcpu, cpus in of_vcpus.items() if vcpu not in guest.realtime]
    return CpuSet(frozenset().union(*(others or of_vcpus.values())))


def _cpus_of_vcpus(
    guest: GuestTopology, pinning: Pinning, host: ComputeHost
) -> Iterator[tuple[int, frozenset[int]]]:
    for cell, pinned in zip(guest.cells, pinning.cells, strict=True):
        floating = shared_vcpu_cpus(pinned, host)
        yield from ((vcpu, floating) for vcpu in cell.cpuset)
        yield from ((vcpu, frozenset({cpu})) for vcpu, cpu in pinned.cpu_pinning.items())
