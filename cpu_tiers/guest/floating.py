"""The host CPUs over which the shared vCPUs and the emulator threads of a guest float.

Spec: libvirt-emulator-threads-policy; decision D5. A guest without a NUMA topology has no pinned
vCPU: all its vCPUs float over
:attr:`~cpu_tiers.model.compute.ComputeHost.cpu_shared_set` if this option is set.
"""

from collections.abc import Iterator

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestTopology, Pinning


def shared_vcpu_cpus(pinning: CellPinning, host: ComputeHost) -> CpuSet:
    """Return the host CPUs for the shared vCPUs of a guest cell.

    :raises InvalidInput: the host does not have the cell.
    """
    return host.cell(pinning.host_cell).shared


def emulator_thread_cpus(guest: GuestTopology, pinning: Pinning, host: ComputeHost) -> CpuSet:
    """Return the host CPUs over which the emulator threads of a guest float.

    With ``isolate`` these are the CPUs reserved for emulator threads, with ``share`` the
    ``cpu_shared_set`` of the host if it is set. In all other cases the emulator threads use the
    CPUs of the vCPUs that are not real-time, or of all vCPUs if all are real-time.

    :raises InvalidInput: the host does not have a cell to which the guest is pinned; or the guest
        has real-time vCPUs and the policy ``share``, and the host has no ``cpu_shared_set``.
        Nova does not start such a guest.
    """
    if guest.emulator_threads_policy == "isolate":
        return CpuSet(frozenset().union(*(cell.cpuset_reserved for cell in pinning.cells)))
    if guest.emulator_threads_policy == "share" and host.cpu_shared_set:
        return host.cpu_shared_set
    if guest.emulator_threads_policy == "share" and guest.realtime:
        raise InvalidInput.of(
            "nova.conf, [compute] cpu_shared_set",
            "not set on the host of a guest with real-time vCPUs and emulator threads 'share'",
            "set cpu_shared_set: Nova does not start the guest without the set",
        )
    of_vcpus = dict(_cpus_of_vcpus(guest, pinning, host))
    # Emulator threads would wait for a real-time vCPU that spins: its CPU is the last resort.
    others = [cpus for vcpu, cpus in of_vcpus.items() if vcpu not in guest.realtime]
    return CpuSet(frozenset().union(*(others or of_vcpus.values())))


def _cpus_of_vcpus(
    guest: GuestTopology, pinning: Pinning, host: ComputeHost
) -> Iterator[tuple[int, frozenset[int]]]:
    for cell, pinned in zip(guest.cells, pinning.cells, strict=True):
        floating = shared_vcpu_cpus(pinned, host)
        yield from ((vcpu, floating) for vcpu in cell.cpuset)
        yield from ((vcpu, frozenset({cpu})) for vcpu, cpu in pinned.cpu_pinning.items())
