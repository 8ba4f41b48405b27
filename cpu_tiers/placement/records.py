"""The records of Placement's API as values: inventories, traits and consumers. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from cpu_tiers.accounting.holdings import Portion, ProviderId
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Provider

INSTANCE = "INSTANCE"
"""The consumer type that Nova gives to servers."""

MIGRATION = "MIGRATION"
"""The consumer type of migrations, which hold the allocations of the source host."""


class ListedProvider(NamedTuple):
    """A provider in a list of providers: without inventories, but with its generation."""

    provider: Provider
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventories:
    """The inventories of a provider by resource class, and the provider's generation."""

    generation: int
    by_class: Mapping[str, Inventory]

    def to_json(self) -> dict[str, object]:
        """Return the body of a request to set the inventories."""
        return {
            "resource_provider_generation": self.generation,
            "inventories": {name: inventory_json(item) for name, item in self.by_class.items()},
        }


AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""The fields of an inventory; Placement and :class:`Inventory` have the same names for them."""


def read_inventory(body: Mapping[str, Any]) -> Inventory:
    """Return the inventory in a body of Placement that has been checked already."""
    return Inventory(**{name: body[name] for name in AMOUNTS})


def inventory_json(inventory: Inventory) -> dict[str, float]:
    """Return an inventory in the format of Placement's API."""
    return {name: getattr(inventory, name) for name in AMOUNTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The traits of a provider, and the provider's generation."""

    generation: int
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A consumer of resources; without a generation if Placement does not know the consumer."""

    uuid: str
    allocations: Portion[ProviderId] = field(default_factory=Portion)
    generation: int | None = None
    project_id: str = ""
    user_id: str = ""
    consumer_type: str = INSTANCE

    def to_json(self, *, with_type: bool) -> dict[str, object]:
        """Return the body of a request to set the allocations.

        :param with_type: for microversion 1.38, which requires the type; older ones refuse it.
        """
        amounts = self.allocations.to_json()
        body: dict[str, object] = {
            "allocations": {
                provider: {"resources": provider_amounts}
                for provider, provider_amounts in amounts.items()
            },
            "consumer_generation": self.generation,
            "project_id": self.project_id,
            "user_id": self.user_id,
        }
        return {**body, "consumer_type": self.consumer_type} if with_type else body
