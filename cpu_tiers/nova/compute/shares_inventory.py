"""VCPU_SHARES of a compute host, in Nova's provider tree: beside VCPU, wherever that is.

Spec: cpu-performance-service-levels, "Automatic Inventory Reporting" and
"Upgrade impact"; decisions D2 and D8. Each function refuses before it edits.
"""

import logging
from collections.abc import Collection, Mapping
from typing import Any

from nova import exception

from cpu_tiers.accounting.holdings import total_of
from cpu_tiers.accounting.missing_shares import (
    SharesDoNotFit,
    Shortfall,
    divide_by_vcpu,
    find_rooms,
    refuse_what_does_not_fit,
)
from cpu_tiers.errors import FaultList
from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.nova import consumers
from cpu_tiers.nova.compute.numa_inventory import nodes_of
from cpu_tiers.nova.compute.tracker_run import Run
from cpu_tiers.placement.plan import vanishing_shares
from cpu_tiers.placement.records import inventory_json, read_inventory

LOG = logging.getLogger(__name__)


def providers_of(tree: Any, nodename: str) -> list[Any]:
    """Return Nova's data of the providers that may have shares: the root and its NUMA nodes."""
    return [tree.data(nodename), *nodes_of(tree, nodename)]


def has_shares(tree: Any, nodename: str) -> bool:
    """Tell whether Placement has shares of the host."""
    return any(VCPU_SHARES in data.inventory for data in providers_of(tree, nodename))


def put_shares(tree: Any, nodename: str, multiplier: int) -> None:
    """Put an inventory of shares beside each VCPU of the host."""
    for data in providers_of(tree, nodename):
        if VCPU in data.inventory:
            shares = shares_inventory(read_inventory(data.inventory[VCPU]), multiplier)
            _add_shares(tree, data.uuid, inventory_json(shares))


def put_back_shares(tree: Any, kept: Mapping[str, Mapping[str, float]]) -> None:
    """Have providers report again what they reported, unless they are gone."""
    for provider, record in kept.items():
        if tree.exists(provider):
            _add_shares(tree, provider, record)


def _add_shares(tree: Any, provider: str, record: Mapping[str, float]) -> None:
    inventory = tree.data(provider).inventory
    tree.update_inventory(provider, {**inventory, VCPU_SHARES: dict(record)})


def refuse_two_reporters(run: Run, tree: Any, nodename: str) -> None:
    """Refuse to start where provider.yaml reports shares too.

    Nova would merge the two in every run, fail, and report nothing at all; or
    a NUMA-aware host would have shares twice.

    :raises nova.exception.InvalidConfiguration: it does.
    """
    for data in providers_of(tree, nodename):
        file = _file_of(run, data)
        if file is not None:
            raise exception.InvalidConfiguration(
                f"The provider configuration file {file} gives {data.name} an inventory of"
                f" {VCPU_SHARES}, and so does [libvirt] report_vcpu_shares = true: Nova takes a"
                f" class from one of them alone. Take {VCPU_SHARES} out of the file, and start"
                " the service again"
            )


def shares_to_keep(run: Run | None, tree: Any, nodename: str) -> dict[str, Mapping[str, float]]:
    """Return the shares that the host has though it does not report them, by provider.

    Nova would remove them. Where the service is running already, they are
    kept; provider.yaml looks after its own.

    :raises nova.exception.InvalidConfiguration: the service is starting, so
        reporting was turned off.
    """
    kept = {
        data.uuid: data
        for data in providers_of(tree, nodename)
        if VCPU_SHARES in data.inventory and not (run and _file_of(run, data))
    }
    for uuid, data in kept.items():
        refusal = vanishing_shares(data.name, uuid)
        if run is not None and run.startup:
            raise exception.InvalidConfiguration(str(refusal))
        LOG.error("%s", refusal)
    return {uuid: data.inventory[VCPU_SHARES] for uuid, data in kept.items()}


def _file_of(run: Run, data: Any) -> str | None:
    return run.file_with_shares(data.name, data.uuid, is_root=data.parent_uuid is None)


def find_demands(
    run: Run, tree: Any, nodename: str, allocations: Mapping[str, Any]
) -> dict[str, tuple[Shortfall, ...]]:
    """Return the shares that consumers of the host lack, by the uuid of the provider."""
    uuid = tree.data(nodename).uuid
    node = consumers.ComputeNode(
        context=run.context, host=run.tracker.host, name=nodename, uuid=uuid
    )
    held = _held(allocations, {data.uuid for data in providers_of(tree, nodename)})
    return divide_by_vcpu(consumers.find_share_shortfalls(node, total_of(held)), held)


def refuse_to_start(
    tree: Any,
    nodename: str,
    demands: Mapping[str, tuple[Shortfall, ...]],
    allocations: Mapping[str, Any],
) -> None:
    """Check that what servers lack fits beside what is held.

    :param tree: as it is going to be. A provider that is to have no shares has
        no shared CPU, and then its VCPU does not fit either.
    :raises nova.exception.ReshapeFailed: every server that finds no room is
        named.
    """
    reporting = {d.uuid: d for d in providers_of(tree, nodename) if VCPU_SHARES in d.inventory}
    inventories = {
        uuid: {VCPU_SHARES: read_inventory(data.inventory[VCPU_SHARES])}
        for uuid, data in reporting.items()
    }
    asked = {uuid: lacking for uuid, lacking in demands.items() if uuid in reporting}
    rooms = find_rooms(inventories, _held(allocations, reporting.keys()), asked)
    faults = FaultList()
    for uuid, verdicts in rooms.items():
        with faults:
            refuse_what_does_not_fit(reporting[uuid].name, verdicts)
    if faults.faults:
        raise exception.ReshapeFailed(
            error=f"{SharesDoNotFit(faults.faults)}\nNothing was changed. Or give {nodename} more"
            " shares, by [libvirt] vcpu_share_multiplier or cpu_allocation_ratio; or, where it"
            " does not report shares yet, start it with [libvirt] report_vcpu_shares = false"
        )


def add_demands(
    demands: Mapping[str, tuple[Shortfall, ...]], allocations: dict[str, dict[str, Any]]
) -> None:
    """Add what consumers lack to their allocations, in place as Nova wants it."""
    for provider, lacking in demands.items():
        for demand in lacking:
            resources = allocations[demand.consumer]["allocations"][provider]["resources"]
            resources[VCPU_SHARES] = demand.shares
            LOG.info("%s gets %d %s", demand.owner.name, demand.shares, VCPU_SHARES)


def _held(
    allocations: Mapping[str, Any], providers: Collection[str]
) -> dict[str, dict[str, Mapping[str, int]]]:
    """Return consumer to provider to what is held there, of these providers."""
    held = {
        consumer: {
            uuid: allocation["resources"]
            for uuid, allocation in body["allocations"].items()
            if uuid in providers
        }
        for consumer, body in allocations.items()
    }
    return {consumer: found for consumer, found in held.items() if found}
