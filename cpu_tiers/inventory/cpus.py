"""Host CPUs: VCPU for those that servers share, PCPU for those dedicated.

Nova's rules (configuration guide, ``[compute] cpu_shared_set``): with neither
set given every CPU is shared; with the dedicated set alone none is.
"""

from collections.abc import Iterable

from cpu_tiers.errors import FaultList
from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.inventory.cpu_providers import Place, cpu_places, spread
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory, ResourceProvider
from cpu_tiers.model.names import PCPU, VCPU


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Return VCPU and PCPU of the root or of each NUMA node, where it has such CPUs.

    :raises InvalidInput: a set names CPUs the host lacks, or both name one.
    """
    check_cpu_sets(host, options)
    vcpu = dict(vcpu_inventories(host, options))
    for place in cpu_places(host, options):
        inventories = {VCPU: vcpu[place]} if place in vcpu else {}
        if dedicated := len(place.cpus & (options.cpu_dedicated_set or CpuSet())):
            inventories[PCPU] = Inventory(total=dedicated, max_unit=dedicated)
        yield place.provider(inventories)


def vcpu_inventories(host: Host, options: InventoryOptions) -> tuple[tuple[Place, Inventory], ...]:
    """Return VCPU of each place that has shared CPUs.

    ``reserved_host_cpus`` is divided evenly between them.
    """
    shared = shared_cpus(host, options)
    places = [place for place in cpu_places(host, options) if place.cpus & shared]
    totals = [len(place.cpus & shared) for place in places]
    reserved = spread(options.reserved_host_cpus, totals)
    return tuple(
        (place, _vcpu(total, held, options))
        for place, total, held in zip(places, totals, reserved, strict=True)
    )


def _vcpu(total: int, reserved: int, options: InventoryOptions) -> Inventory:
    return Inventory(
        total=total,
        reserved=reserved,
        max_unit=total,
        allocation_ratio=options.cpu_allocation_ratio.value,
        ratio_is_initial=options.cpu_allocation_ratio.is_initial,
    )


def shared_cpus(host: Host, options: InventoryOptions) -> CpuSet:
    """Return the CPUs that shared vCPUs float over."""
    if options.cpu_shared_set is not None:
        return options.cpu_shared_set
    return CpuSet() if options.cpu_dedicated_set is not None else host.topology.cpus


def check_cpu_sets(host: Host, options: InventoryOptions) -> None:
    """Refuse sets that this host cannot have.

    :raises InvalidInput: a set names CPUs the host lacks, or both name one.
    """
    faults = FaultList()
    present = host.topology.cpus
    shared = options.cpu_shared_set or CpuSet()
    dedicated = options.cpu_dedicated_set or CpuSet()
    for name, cpus in (("cpu_shared_set", shared), ("cpu_dedicated_set", dedicated)):
        if cpus - present:
            faults.add(
                f"nova.conf, [compute] {name}",
                f"host {host.name} has no CPU {CpuSet(cpus - present)}",
                f"name CPUs of {present}",
            )
    if shared & dedicated:
        faults.add(
            "nova.conf, [compute] cpu_shared_set and cpu_dedicated_set",
            f"CPU {CpuSet(shared & dedicated)} is in both",
            "a CPU is either shared or dedicated",
        )
    faults.raise_if_any()
