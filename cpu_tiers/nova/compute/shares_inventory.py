"""VCPU_SHARES of a host, in Nova's provider tree: beside VCPU, on the root or on NUMA nodes.

Spec: cpu-performance-service-levels, "Automatic Inventory Reporting" and "Upgrade impact";
decisions D2 and D8.
"""

from collections.abc import Iterable, Mapping

from oslo_log import log as logging

from cpu_tiers.accounting.holdings import ProviderName
from cpu_tiers.accounting.missing_shares import Addition, Shortfall, plan_share_additions
from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.nova import consumers
from cpu_tiers.nova.compute.host_report import Allocations, HostReport
from cpu_tiers.nova.compute.start_refusal import MoveRefused, ReportRefused
from cpu_tiers.placement.plan import vanishing_shares
from cpu_tiers.placement.records import inventory_json, read_inventory

LOG = logging.getLogger(__name__)


def has_shares(host: HostReport) -> bool:
    """Tell whether a provider of the host has shares."""
    return any(VCPU_SHARES in data.inventory for data in host.providers)


def put_shares(host: HostReport, multiplier: int, overhead_percent: int = 0) -> None:
    """Put an inventory of shares beside each VCPU of the host.

    :param multiplier: ``[libvirt] vcpu_share_multiplier``, shares for one CPU.
    :param overhead_percent: ``[libvirt] emulator_overhead_percent``.
    """
    for data in host.providers:
        if VCPU in data.inventory:
            vcpu = read_inventory(data.inventory[VCPU])
            shares = shares_inventory(vcpu, multiplier, overhead_percent)
            _add_shares(host, data.uuid, inventory_json(shares))


def put_back_shares(host: HostReport, kept: Mapping[str, Mapping[str, float]]) -> None:
    """Put Nova's records of the shares of existing providers, by uuid, back into the tree."""
    for uuid, record in kept.items():
        if host.tree.exists(uuid):
            _add_shares(host, uuid, record)


def _add_shares(host: HostReport, uuid: str, record: Mapping[str, float]) -> None:
    # ProviderTree.update_inventory replaces all inventories of the provider.
    inventory = host.tree.data(uuid).inventory
    host.tree.update_inventory(uuid, {**inventory, VCPU_SHARES: dict(record)})


def refuse_two_reporters(host: HostReport) -> None:
    """Refuse to start where a provider.yaml reports shares of the host, too.

    ResourceTracker._merge_provider_configs refuses a class of the driver's report: each run would
    fail, and report nothing at all. On a host with NUMA nodes the file may name the root
    while the driver reports shares of the nodes, and the host would have its shares twice.
    """
    for data in host.providers:
        file = host.file_with_shares(data)
        if file is not None:
            raise ReportRefused(
                f"The provider configuration file {file} gives {data.name} an inventory of"
                " CUSTOM_VCPU_SHARES, and so does [libvirt] report_vcpu_shares = true: Nova"
                " accepts a resource class from only one of them. Remove CUSTOM_VCPU_SHARES from"
                " the file, and start nova-compute again"
            )


def shares_to_keep(host: HostReport) -> dict[str, Mapping[str, float]]:
    """Return the records of shares, by provider uuid, that must stay though reporting is off.

    Nova's driver would remove the shares. Outside of a start the shares stay. Shares of a
    provider.yaml are left to Nova: ResourceTracker adds the file's inventories after the driver.

    :raises ReportRefused: nova-compute is starting, so reporting was turned off.
    """
    kept = {
        data.uuid: data
        for data in host.providers
        if VCPU_SHARES in data.inventory and not host.file_with_shares(data)
    }
    for uuid, data in kept.items():
        refusal = vanishing_shares(data.name, uuid)
        if host.is_starting:
            raise ReportRefused(str(refusal))
        LOG.error("%s", refusal)
    return {uuid: data.inventory[VCPU_SHARES] for uuid, data in kept.items()}


def find_missing_shares(host: HostReport, allocations: Allocations) -> tuple[Shortfall, ...]:
    """Return the missing shares of the host's consumers."""
    amounts = host.holdings(allocations).amounts
    return consumers.find_share_shortfalls(host.compute_node, amounts)


def plan_shares(
    host: HostReport, shortfalls: Iterable[Shortfall], allocations: Allocations
) -> tuple[Addition, ...]:
    """Return the shares that a reshape adds.

    On a host with NUMA nodes, consumers get shares of the root first, and the shares move to the
    nodes together with VCPU: ``move_servers`` checks the room of the nodes.

    :param host: with the tree as the host is going to report it.
    """
    inventories = {
        ProviderName(data.name): {VCPU_SHARES: read_inventory(data.inventory[VCPU_SHARES])}
        for data in host.providers
        if VCPU_SHARES in data.inventory
    }
    along = ProviderName(host.name) if host.nodes else None
    return plan_share_additions(inventories, host.holdings(allocations), shortfalls, along=along)


def refuse_shares_without_room(host: HostReport, additions: Iterable[Addition]) -> None:
    """Check that the missing shares fit beside the allocated shares.

    Placement would refuse the whole reshape too, but would not name the servers.

    :raises MoveRefused: each server that has no room is named.
    """
    if faults := [fault for addition in additions for fault in addition.faults]:
        raise MoveRefused(
            error=f"{InvalidInput(faults)}\nNothing was changed. Or give {host.name} more"
            " shares, by [libvirt] vcpu_share_multiplier or cpu_allocation_ratio; or, where it"
            " does not report shares yet, start it with [libvirt] report_vcpu_shares = false"
        )


def add_shares(host: HostReport, additions: Iterable[Addition], allocations: Allocations) -> None:
    """Add the missing shares to the allocations of consumers, in place as Nova wants it."""
    for addition in additions:
        shortfall = addition.shortfall
        for name, resources in addition.goes_to.items():
            held = allocations[shortfall.consumer]["allocations"][host.tree.data(name).uuid]
            held["resources"].update(resources)
        owner = shortfall.owner
        LOG.info(
            "%s gets %d %s", owner.name, shortfall.shares, VCPU_SHARES, instance_uuid=owner.server
        )
