"""VCPU_SHARES of a compute host, in Nova's provider tree.

Spec: cpu-performance-service-levels, "Automatic Inventory Reporting" and
"Upgrade impact"; decisions D2 and D8. Each function refuses before it edits.
"""

import logging
from collections.abc import Mapping
from typing import Any

from nova import exception

from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.nova import consumers
from cpu_tiers.nova.tracking import Run
from cpu_tiers.placement.plan import vanishing_shares
from cpu_tiers.placement.records import inventory_json, read_inventory
from cpu_tiers.placement.reshape import (
    Demand,
    SharesDoNotFit,
    find_room,
    refuse_what_does_not_fit,
)

LOG = logging.getLogger(__name__)


def shares_record(tree: Any, nodename: str, multiplier: int) -> dict[str, float] | None:
    """Return the inventory of shares beside the tree's VCPU, or ``None`` without VCPU."""
    vcpu = tree.data(nodename).inventory.get(VCPU)
    return vcpu and inventory_json(shares_inventory(read_inventory(vcpu), multiplier))


def add_shares(tree: Any, nodename: str, record: Mapping[str, float]) -> None:
    """Put an inventory of shares beside what the provider has."""
    tree.update_inventory(nodename, {**tree.data(nodename).inventory, VCPU_SHARES: dict(record)})


def refuse_two_reporters(run: Run, tree: Any, nodename: str) -> None:
    """Refuse to start where provider.yaml reports shares too.

    Nova would merge the two in every run, fail, and report nothing at all.

    :raises nova.exception.InvalidConfiguration: it does.
    """
    file = run.file_with_shares(nodename, tree.data(nodename).uuid)
    if file is not None:
        raise exception.InvalidConfiguration(
            f"The provider configuration file {file} gives {nodename} an inventory of"
            f" {VCPU_SHARES}, and so does [libvirt] report_vcpu_shares = true: Nova takes a"
            f" class from one of them alone. Take {VCPU_SHARES} out of the file, and start the"
            " service again"
        )


def shares_to_keep(run: Run | None, tree: Any, nodename: str) -> Mapping[str, float] | None:
    """Return the shares that the host has though it does not report them.

    Nova would remove them. Where the service is running already, they are
    kept; provider.yaml looks after its own.

    :raises nova.exception.InvalidConfiguration: the service is starting, so
        reporting was turned off.
    """
    provider = tree.data(nodename)
    record: Mapping[str, float] | None = provider.inventory.get(VCPU_SHARES)
    if record is None or (run and run.file_with_shares(nodename, provider.uuid)):
        return None
    refusal = vanishing_shares(nodename, provider.uuid)
    if run is not None and run.startup:
        raise exception.InvalidConfiguration(str(refusal))
    LOG.error("%s", refusal)
    return record


def find_demands(
    run: Run, tree: Any, nodename: str, allocations: Mapping[str, Any]
) -> tuple[Demand, ...]:
    """Return the shares that consumers of the host lack."""
    uuid = tree.data(nodename).uuid
    node = consumers.Node(context=run.context, host=run.tracker.host, name=nodename, uuid=uuid)
    return consumers.find_demands(node, _held(allocations, uuid))


def refuse_to_start(
    tree: Any,
    nodename: str,
    shares: Mapping[str, float] | None,
    demands: tuple[Demand, ...],
    allocations: Mapping[str, Any],
) -> None:
    """Check that what servers lack fits beside what is held.

    :param shares: the inventory that the host is going to have; ``None``
        where it has no shared CPU, and then its VCPU does not fit either.
    :raises nova.exception.ReshapeFailed: every server that finds no room is
        named.
    """
    if shares is None:
        return
    held = _held(allocations, tree.data(nodename).uuid)
    try:
        verdicts = find_room({VCPU_SHARES: read_inventory(shares)}, held, demands)
        refuse_what_does_not_fit(nodename, verdicts)
    except SharesDoNotFit as error:
        raise exception.ReshapeFailed(
            error=f"{error}\nNothing was changed. Or give {nodename} more shares, by [libvirt]"
            " vcpu_share_multiplier or cpu_allocation_ratio; or, where it does not report shares"
            " yet, start it with [libvirt] report_vcpu_shares = false"
        ) from error


def add_demands(
    demands: tuple[Demand, ...], allocations: dict[str, dict[str, Any]], provider: str
) -> None:
    """Add what consumers lack to their allocations, in place as Nova wants it.

    :param provider: the uuid of the provider that has the shares.
    """
    for demand in demands:
        resources = allocations[demand.consumer]["allocations"][provider]["resources"]
        resources[VCPU_SHARES] = demand.shares
        LOG.info("%s gets %d %s", demand.holder.name, demand.shares, VCPU_SHARES)


def _held(allocations: Mapping[str, Any], provider: str) -> dict[str, Mapping[str, int]]:
    return {
        consumer: body["allocations"][provider]["resources"]
        for consumer, body in allocations.items()
        if provider in body["allocations"]
    }
