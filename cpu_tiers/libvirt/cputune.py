"""Write ``<cputune>``: the weight of a domain, and the host CPUs of each of its threads.

Source: https://libvirt.org/formatdomain.html#cpu-tuning. ``<shares>`` becomes ``cpu.shares``
(cgroup v1) or ``cpu.weight`` (v2) of the cgroup of the whole domain.
"""

from collections.abc import Iterable

from lxml.builder import E
from lxml.etree import Element, SubElement, _Element

from cpu_tiers.extra_specs.shares import domain_shares
from cpu_tiers.guest.floating import emulator_thread_cpus, shared_vcpu_cpus
from cpu_tiers.libvirt.contract import Guest


def elements(guest: Guest) -> Iterable[_Element]:
    """Return ``<cputune>`` if the flavor sets shares or the guest is pinned.

    The I/O thread of the domain runs where the emulator threads run, as in Nova.

    :raises InvalidInput: the flavor's shares are invalid, or the emulator threads have no CPUs:
        see :func:`~cpu_tiers.guest.floating.emulator_thread_cpus`.
    """
    cputune = Element("cputune")
    shares = domain_shares(guest.flavor)
    if shares is not None:
        cputune.append(E.shares(str(shares)))
    if guest.topology is not None and guest.pinning is not None:
        _pin_vcpus(cputune, guest)
        emulator = emulator_thread_cpus(guest.topology, guest.pinning, guest.host)
        SubElement(cputune, "emulatorpin", cpuset=str(emulator))
        SubElement(cputune, "iothreadpin", iothread="1", cpuset=str(emulator))
        # One element for all real-time vCPUs: they have the same scheduler and priority.
        if realtime := guest.topology.realtime:
            priority = str(guest.realtime_priority)
            fifo = {"vcpus": str(realtime), "scheduler": "fifo", "priority": priority}
            SubElement(cputune, "vcpusched", fifo)
    return [cputune] if len(cputune) else []


def _pin_vcpus(cputune: _Element, guest: Guest) -> None:
    cpusets: dict[int, str] = {}
    for cell, pinning in guest.cells:
        cpusets |= dict.fromkeys(cell.cpuset, str(shared_vcpu_cpus(pinning, guest.host)))
        cpusets |= {vcpu: str(cpu) for vcpu, cpu in pinning.cpu_pinning.items()}
    for vcpu, cpus in sorted(cpusets.items()):
        SubElement(cputune, "vcpupin", vcpu=str(vcpu), cpuset=cpus)


def set_shares(domain: _Element, shares: int) -> None:
    """Set or replace the weight of a domain, in place."""
    cputune = domain.find("cputune")
    if cputune is None:
        cputune = SubElement(domain, "cputune")
    element = cputune.find("shares")
    if element is None:
        element = SubElement(cputune, "shares")
    element.text = str(shares)
