"""Write ``<cputune>``: the weight of a domain, and the host CPUs of each of its threads.

Source: https://libvirt.org/formatdomain.html#cpu-tuning. ``<shares>`` becomes ``cpu.shares``
(cgroup v1) or ``cpu.weight`` (v2) of the cgroup of the whole domain. Shared vCPUs and emulator
threads float over host CPUs: spec libvirt-emulator-threads-policy; decision D5.
"""

from collections.abc import Iterable

from lxml.builder import E
from lxml.etree import Element, SubElement, _Element

from cpu_tiers.errors import InvalidInput
from cpu_tiers.extra_specs.shares import domain_shares
from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning


def elements(guest: Guest) -> Iterable[_Element]:
    """Return ``<cputune>`` if the flavor sets shares or the guest is pinned.

    The I/O thread of the domain runs where the emulator threads run, as in Nova.

    :raises InvalidInput: the flavor's shares are invalid, or as :func:`emulator_thread_cpus`.
    """
    cputune = Element("cputune")
    shares = domain_shares(guest.flavor)
    if shares is not None:
        cputune.append(E.shares(str(shares)))
    if guest.topology is not None and guest.pinning is not None:
        for vcpu, cpus in sorted(cpus_of_vcpus(guest.cells, guest.host).items()):
            SubElement(cputune, "vcpupin", vcpu=str(vcpu), cpuset=str(cpus))
        emulator = emulator_thread_cpus(guest.topology, guest.pinning, guest.host)
        SubElement(cputune, "emulatorpin", cpuset=str(emulator))
        SubElement(cputune, "iothreadpin", iothread="1", cpuset=str(emulator))
        # One element for all real-time vCPUs: they have the same scheduler and priority.
        if realtime := guest.topology.realtime:
            priority = str(guest.realtime_priority)
            fifo = {"vcpus": str(realtime), "scheduler": "fifo", "priority": priority}
            SubElement(cputune, "vcpusched", fifo)
    return [cputune] if len(cputune) else []


def set_shares(domain: _Element, shares: int) -> None:
    """Set or replace the weight of a domain, in place."""
    element = domain
    for tag in ("cputune", "shares"):
        child = element.find(tag)
        element = SubElement(element, tag) if child is None else child
    element.text = str(shares)


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
    cpus_by_vcpu = cpus_of_vcpus(zip(guest.cells, pinning.cells, strict=True), host)
    # Emulator threads would wait for a real-time vCPU that spins: its CPU is the last resort.
    others = [cpus for vcpu, cpus in cpus_by_vcpu.items() if vcpu not in guest.realtime]
    return CpuSet(frozenset().union(*(others or cpus_by_vcpu.values())))


def cpus_of_vcpus(
    cells: Iterable[tuple[GuestCell, CellPinning]], host: ComputeHost
) -> dict[int, CpuSet]:
    """Return the host CPUs of each vCPU: one for a dedicated vCPU.

    :raises InvalidInput: the host does not have a cell.
    """
    cpus: dict[int, CpuSet] = {}
    for cell, pinning in cells:
        cpus |= dict.fromkeys(cell.cpuset, host.cell(pinning.host_cell).shared)
        cpus |= {vcpu: CpuSet([cpu]) for vcpu, cpu in pinning.cpu_pinning.items()}
    return cpus
