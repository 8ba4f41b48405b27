"""The CPUs of a host, VCPU for shared CPUs and PCPU for dedicated CPUs, and its NUMA nodes.

The CPUs are reported on the root provider, or on each NUMA node of the host. Spec:
numa-topology-with-rps, "Compute node RP", "NUMA RP" and "Optionally configured NUMA resources".

The rules for the sets are Nova's (configuration guide, ``[compute] cpu_shared_set``). If
neither set is configured, every CPU is shared. If only the dedicated set is
configured, no CPU is shared. With the older option ``vcpu_pin_set``, the CPUs
of this set are shared, and Nova pins servers to the same CPUs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from cpu_tiers.errors import FaultList
from cpu_tiers.inventory.contract import Host, InventoryOptions
from cpu_tiers.model.cpu_set import CpuSet
from cpu_tiers.model.inventory import Inventory, ResourceProvider, divide_reserved
from cpu_tiers.model.names import NUMA_SERVER, PCPU, VCPU, names_of_trait
from cpu_tiers.model.numa import CELL_TRAIT, NO_NUMA_TRAIT, NODE_TRAIT, count_traits, node_name

ANCHOR = Inventory(total=10_000, max_unit=1)
"""The inventory of ``NUMA_SERVER``: more than a host has servers. Each server with
NUMA nodes claims 1 of the root provider."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuProvider:
    """The name of a provider, the name of its parent, and the host CPUs that it stands for.

    :param cell: the id of the host cell; ``None`` for the root provider.
    """

    name: str
    parent: str | None
    cpus: CpuSet
    cell: int | None = None

    def with_inventories(self, inventories: dict[str, Inventory]) -> ResourceProvider:
        """Return the resource provider with these inventories."""
        return ResourceProvider(name=self.name, parent=self.parent, inventories=inventories)


def report(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report VCPU and PCPU on the root provider, or on each NUMA node that has such CPUs.

    :raises InvalidInput: a set names a CPU that the host does not have, or both
        sets name the same CPU.
    """
    has_nodes = bool(options.enable_numa_reporting_to_placement)
    check_cpu_sets(host, options, needs_nodes=has_nodes)
    vcpu_of = dict(vcpu_inventories(host, options))
    for provider in cpu_providers(host, options):
        inventories = {VCPU: vcpu_of[provider]} if provider in vcpu_of else {}
        dedicated_cpus = options.cpu_dedicated_set or CpuSet()
        # The root provider has the CPUs that are powered down, too.
        if dedicated := len(dedicated_cpus & provider.cpus if has_nodes else dedicated_cpus):
            # Nova reserves host CPUs of the shared set only, and never overcommits dedicated CPUs.
            inventories[PCPU] = Inventory(total=dedicated, max_unit=dedicated)
        yield provider.with_inventories(inventories)


def vcpu_inventories(
    host: Host, options: InventoryOptions
) -> tuple[tuple[CpuProvider, Inventory], ...]:
    """Return the providers that have shared CPUs, each with its inventory of VCPU.

    ``reserved_host_cpus`` is divided evenly among these providers.
    """
    shared = shared_cpus(host, options)
    providers = [provider for provider in cpu_providers(host, options) if provider.cpus & shared]
    totals = [len(provider.cpus & shared) for provider in providers]
    reserved = divide_reserved(options.reserved_host_cpus, totals)
    ratio = options.cpu_allocation_ratio
    return tuple(
        (provider, ratio.inventory(total, amount))
        for provider, total, amount in zip(providers, totals, reserved, strict=True)
    )


def shared_cpus(host: Host, options: InventoryOptions) -> CpuSet:
    """Return the host CPUs on which shared vCPUs run."""
    if options.vcpu_pin_set is not None:
        return options.vcpu_pin_set
    if options.cpu_shared_set is not None:
        return options.cpu_shared_set
    return CpuSet() if options.cpu_dedicated_set is not None else host.topology.cpus


def pinned_cpus(host: Host, options: InventoryOptions) -> CpuSet:
    """Return the host CPUs to which Nova pins dedicated vCPUs."""
    if options.cpu_dedicated_set is not None:
        return options.cpu_dedicated_set
    if options.cpu_shared_set is not None and options.vcpu_pin_set is None:
        return CpuSet()
    return shared_cpus(host, options)


def _set_of_shared_vcpus(options: InventoryOptions) -> CpuSet:
    # Beside vcpu_pin_set, cpu_shared_set is only for emulator threads, which may run elsewhere.
    return CpuSet() if options.vcpu_pin_set is not None else options.cpu_shared_set or CpuSet()


def check_cpu_sets(host: Host, options: InventoryOptions, *, needs_nodes: bool = False) -> None:
    """Refuse CPU sets that do not fit the host.

    :param needs_nodes: the answer needs the NUMA node of each CPU. Otherwise, dedicated CPUs may
        be powered down by ``cpu_power_management``.
    :raises InvalidInput: a set names a CPU that the host does not have, or both
        sets name the same CPU.
    """
    faults = FaultList()
    present = host.topology.cpus
    shared = _set_of_shared_vcpus(options)
    dedicated = options.cpu_dedicated_set or CpuSet()
    for name, cpus in (
        ("[DEFAULT] vcpu_pin_set", options.vcpu_pin_set or CpuSet()),
        ("[compute] cpu_shared_set", shared),
        ("[compute] cpu_dedicated_set", dedicated),
    ):
        may_be_down = options.cpu_power_management and cpus is dedicated
        absent = CpuSet(cpus - present)
        if absent and not may_be_down:
            given = f"host {host.name} has no CPU {absent}"
            faults.add(f"nova.conf, {name}", given, f"name CPUs of {present}")
        elif absent and needs_nodes:
            faults.add(f"nova.conf, {name}", *_powered_down(host, absent))
    if shared & dedicated:
        faults.add(
            "nova.conf, [compute] cpu_shared_set and cpu_dedicated_set",
            f"CPU {CpuSet(shared & dedicated)} is in both",
            "a CPU is either shared or dedicated",
        )
    faults.raise_if_any()


def _powered_down(host: Host, cpus: CpuSet) -> tuple[str, str]:
    """Return what is given and what is allowed where the answer needs the nodes of all CPUs."""
    return (
        f"CPU {cpus} of host {host.name} is powered down ([libvirt] cpu_power_management), and"
        " libvirt does not list its NUMA node",
        "use the output of `virsh capabilities` from before nova-compute powered CPUs down; the"
        " CPU set is right",
    )


def cpu_providers(host: Host, options: InventoryOptions) -> tuple[CpuProvider, ...]:
    """Return the root provider or, where the host reports them, a provider for each NUMA node."""
    if not options.enable_numa_reporting_to_placement:
        return (CpuProvider(name=host.name, parent=None, cpus=host.topology.cpus),)
    # libvirt also lists cells that have neither CPUs nor memory; they have nothing to report.
    return tuple(
        CpuProvider(
            name=node_name(host.name, cell.id), parent=host.name, cpus=cell.cpus, cell=cell.id
        )
        for cell in host.topology.cells
        if cell.cpus or cell.memory_kb
    )


def report_nodes(host: Host, options: InventoryOptions) -> Iterable[ResourceProvider]:
    """Report the providers and traits for ``[compute] enable_numa_reporting_to_placement``.

    A host with ``True`` reports each NUMA node with HW_NUMA_ROOT and the number of its host cell,
    and on the root provider how many nodes with CPUs there are. A host with ``False`` reports
    HW_NON_NUMA on its root provider. A host where the option is not set reports neither.
    """
    if options.enable_numa_reporting_to_placement is None:
        return []
    if not options.enable_numa_reporting_to_placement:
        return [ResourceProvider(name=host.name, traits=names_of_trait(NO_NUMA_TRAIT))]
    nodes = cpu_providers(host, options)
    count = count_traits(sum(bool(node.cpus) for node in nodes))
    providers = [ResourceProvider(name=host.name, inventories={NUMA_SERVER: ANCHOR}, traits=count)]
    for node in nodes:
        traits = frozenset({NODE_TRAIT, f"{CELL_TRAIT}{node.cell}"})
        providers.append(ResourceProvider(name=node.name, parent=node.parent, traits=traits))
    return providers
