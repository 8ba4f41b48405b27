"""Hosts with traits, limits of a claim and allocations, and queries for servers on the hosts."""

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model import CloudProvider


def inventory(total: int, **units: int) -> Inventory:
    return Inventory(**{"total": total, "max_unit": total, **units})  # type: ignore[arg-type]  # all are whole numbers


def host(
    name: str = "host",
    *traits: str,
    used: dict[str, int] | None = None,
    aggregates: tuple[str, ...] = (),
    parent: str | None = None,
    **inventories: Inventory,
) -> CloudProvider:
    return CloudProvider(
        uuid=name,
        name=name,
        parent=parent,
        traits=frozenset(traits),
        inventories=inventories,
        used=used or {},
        aggregates=frozenset(aggregates),
    )


def query(*traits: str, **amounts: int) -> CandidateQuery:
    return CandidateQuery(
        groups=(RequestGroup(resources=amounts),), root_required=frozenset(traits)
    )
