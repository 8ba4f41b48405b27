"""Small guests with a given number of vCPUs, floating or pinned."""

from collections.abc import Mapping
from dataclasses import replace

from cpu_tiers.libvirt.contract import Guest
from cpu_tiers.model.compute import ComputeCell, ComputeHost
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.guest import CellPinning, GuestCell, GuestTopology, Pinning


def server(
    name: str,
    *,
    cpus: frozenset[int] = frozenset({0}),
    vcpus: int = 1,
    pinned: frozenset[int] = frozenset(),
    extra_specs: Mapping[str, str],
    memory_mb: int = 32,
) -> Guest:
    """Return a guest.

    :param cpus: what shared vCPUs float over.
    :param pinned: host CPUs of the first vCPUs, one each; the others float.
    """
    flavor = Flavor(name=name, vcpus=vcpus, memory_mb=memory_mb, extra_specs=extra_specs)
    host = ComputeHost(cells=(), cpu_shared_set=CpuSet(cpus))
    guest = Guest(name=name, flavor=flavor, arch="x86_64", host=host)
    return _pinned(guest, pinned) if pinned else guest


def _pinned(guest: Guest, pinned: frozenset[int]) -> Guest:
    shared, memory_mb = guest.host.cpu_shared_set, guest.flavor.memory_mb
    vcpus = dict(enumerate(sorted(pinned)))
    node = GuestCell(
        id=0,
        cpuset=CpuSet(frozenset(range(guest.flavor.vcpus)) - vcpus.keys()),
        pcpuset=CpuSet(vcpus),
        memory_mb=memory_mb,
    )
    cell = ComputeCell(id=0, shared=shared, dedicated=CpuSet(pinned), memory_mb=memory_mb)
    return replace(
        guest,
        host=ComputeHost(cells=(cell,), cpu_shared_set=shared),
        topology=GuestTopology(cells=(node,), cpu_policy="mixed" if node.cpuset else "dedicated"),
        pinning=Pinning(cells=(CellPinning(host_cell=0, cpu_pinning=vcpus),)),
    )
