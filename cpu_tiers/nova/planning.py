"""What consumers of a host lack, worked out from outside of its nova-compute.

Two questions: what a start of nova-compute that reports shares would do
(decision D8), and what is missing where shares are reported already. Both ask
Nova whose the allocations are, as the driver does, and Placement for the rest.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from nova import objects
from nova.scheduler.utils import resources_from_flavor

from cpu_tiers.errors import InvalidInput
from cpu_tiers.inventory.shares import shares_inventory
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import VCPU, VCPU_SHARES
from cpu_tiers.nova.consumers import Node, find_demands, to_holder
from cpu_tiers.placement import allocations
from cpu_tiers.placement.client import PlacementClient
from cpu_tiers.placement.conflicts import with_fresh_reads
from cpu_tiers.placement.reshape import Demand, Verdict, find_room, missing_shares

Held = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the consumers of a host lack, and whether there is room for it.

    :param host: the name of the root provider.
    :param shares: the inventory of shares it was worked out for; ``None``
        where the host has none.
    """

    host: str
    shares: Inventory | None
    verdicts: tuple[Verdict, ...] = ()

    @property
    def fits(self) -> bool:
        """Tell whether there is room for all."""
        return not any(verdict.limit for verdict in self.verdicts)


def plan_reshape(client: PlacementClient, node: Node, multiplier: int) -> Plan:
    """Return what nova-compute does at a start with ``report_vcpu_shares``.

    :param multiplier: its ``[libvirt] vcpu_share_multiplier``.
    :raises InvalidInput: Placement has nothing of the host to go by.
    """
    inventories = _inventories(client, node)
    if not inventories:
        raise InvalidInput.of(
            f"host {node.name}",
            f"Placement has no inventory of it (provider {node.uuid})",
            "start its nova-compute, which reports one",
        )
    vcpu = inventories.get(VCPU)
    if vcpu is None:
        return Plan(host=node.name, shares=None)
    shares = shares_inventory(vcpu, multiplier)
    held = client.allocations(node.uuid)
    verdicts = find_room({VCPU_SHARES: shares}, held, find_demands(node, held))
    return Plan(host=node.name, shares=shares, verdicts=verdicts)


def plan_heal(client: PlacementClient, node: Node, servers: Collection[str] = ()) -> Plan:
    """Return what servers lack on a host that reports shares.

    :param servers: look at these alone; empty: at all.
    """
    return _heal(client, node, servers)[0]


def heal(client: PlacementClient, node: Node, servers: Collection[str] = ()) -> Plan:
    """Write what servers lack, all of a host at once; return what it was.

    Nothing is written unless there is room for all.

    :raises GenerationConflict: somebody else wrote in between, again and again.
    """

    def attempt() -> Plan:
        plan, held = _heal(client, node, servers)
        if plan.verdicts and plan.fits:
            demands = (verdict.demand for verdict in plan.verdicts)
            allocations.add(client, node.uuid, demands, held)
        return plan

    return with_fresh_reads(attempt)


def _heal(client: PlacementClient, node: Node, servers: Collection[str]) -> tuple[Plan, Held]:
    inventories = _inventories(client, node)
    if VCPU_SHARES not in inventories:
        return Plan(host=node.name, shares=None), {}
    held = client.allocations(node.uuid)
    demands = [*find_demands(node, held), *_without_allocations(client, node, held)]
    if servers:
        demands = [demand for demand in demands if demand.holder.server in servers]
    verdicts = find_room(inventories, held, demands)
    return Plan(host=node.name, shares=inventories[VCPU_SHARES], verdicts=verdicts), held


def _without_allocations(client: PlacementClient, node: Node, held: Held) -> Iterator[Demand]:
    """Yield all that servers ask for which run on the host and hold nothing anywhere.

    A server in the middle of a task is left to that task, as Nova's own
    ``heal_allocations`` leaves it.
    """
    for server in objects.InstanceList.get_by_host_and_node(
        node.context, node.host, node.name, expected_attrs=["flavor", "system_metadata"]
    ):
        if server.task_state is not None or server.uuid in held:
            continue
        if not client.consumer(server.uuid).allocations:
            yield _whole_demand(server)


def _whole_demand(server: Any) -> Demand:
    """Return what a server's flavor asks for: what Nova says, and the shares beside."""
    holder = to_holder(server, server.flavor)
    resources = {name: n for name, n in resources_from_flavor(server, server.flavor).items() if n}
    whole = Demand(consumer=server.uuid, holder=holder, resources=resources)
    shares = missing_shares({server.uuid: resources}, {server.uuid: holder})
    return replace(whole, resources={**resources, **shares[0].resources}) if shares else whole


def _inventories(client: PlacementClient, node: Node) -> Mapping[str, Inventory]:
    """Return the inventories of a host; none where Placement does not know it yet."""
    known = client.providers_in_tree(node.uuid)
    return client.inventories(node.uuid).by_class if known else {}
