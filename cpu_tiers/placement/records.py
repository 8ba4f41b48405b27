"""The records of Placement's API: providers, inventories, traits and consumers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpu_tiers.accounting.holdings import Amounts, Portion, ProviderId, ProviderName
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.response import PlacementResponse

INSTANCE = "INSTANCE"
"""The consumer type that Nova gives to servers."""

MIGRATION = "MIGRATION"
"""The consumer type of migrations, which hold the allocations of the source host."""


def read_amounts(response: PlacementResponse, body: object, key: str) -> Amounts:
    """Return the amounts by resource class under a key of a body.

    :raises PlacementAnswerInvalid: an amount is no whole number, or negative.
    """
    amounts = response.read(body, key, dict)
    for name in amounts:
        if response.read(amounts, name, int) < 0:
            raise response.invalid(f"JSON with {amounts[name]} of {name}")
    return amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A resource provider; ``parent_uuid`` of a root provider is ``None``."""

    uuid: ProviderId
    name: ProviderName
    parent_uuid: ProviderId | None

    @classmethod
    def read(cls, response: PlacementResponse, body: object) -> "Provider":
        """Read a provider from a part of a response."""
        uuid = response.read(body, "uuid", str)
        is_root = response.read(body, "root_provider_uuid", str) == uuid
        parent = None if is_root else response.read(body, "parent_provider_uuid", str)
        return cls(
            uuid=ProviderId(uuid),
            name=ProviderName(response.read(body, "name", str)),
            parent_uuid=None if parent is None else ProviderId(parent),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventories:
    """The inventories of a provider by resource class, and the provider's generation."""

    generation: int
    by_class: Mapping[str, Inventory]

    @classmethod
    def read(cls, response: PlacementResponse) -> "Inventories":
        """Read the response of ``/resource_providers/…/inventories``."""
        body = response.body()
        by_class = response.read(body, "inventories", dict)
        return cls(
            generation=response.read(body, "resource_provider_generation", int),
            by_class={name: _read(response, item) for name, item in by_class.items()},
        )

    def to_json(self) -> dict[str, object]:
        """Return the body of a request to set the inventories."""
        return {
            "resource_provider_generation": self.generation,
            "inventories": {name: inventory_json(item) for name, item in self.by_class.items()},
        }


def _read(response: PlacementResponse, body: object) -> Inventory:
    ratio = response.read(body, "allocation_ratio", float)
    if not math.isfinite(ratio):  # Python reads Infinity and NaN, which are no JSON
        raise response.invalid(f"JSON with the allocation_ratio {ratio}")
    return Inventory(
        total=response.read(body, "total", int),
        reserved=response.read(body, "reserved", int),
        min_unit=response.read(body, "min_unit", int),
        max_unit=response.read(body, "max_unit", int),
        step_size=response.read(body, "step_size", int),
        allocation_ratio=ratio,
    )


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

    @classmethod
    def read(cls, response: PlacementResponse) -> "Traits":
        """Read the response of ``/resource_providers/…/traits``."""
        body = response.body()
        return cls(
            generation=response.read(body, "resource_provider_generation", int),
            names=frozenset(map(str, response.read(body, "traits", list))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A consumer of resources, such as a server or a migration.

    :param allocations: empty for a consumer that Placement does not know.
    :param generation: None for a consumer that Placement does not know.
    :param consumer_type: such as ``INSTANCE`` or ``MIGRATION``.
    """

    uuid: str
    allocations: Portion[ProviderId] = field(default_factory=Portion)
    generation: int | None = None
    project_id: str = ""
    user_id: str = ""
    consumer_type: str = INSTANCE

    @classmethod
    def read(cls, uuid: str, response: PlacementResponse) -> "Consumer":
        """Read the response of ``/allocations/{uuid}``."""
        body = response.body()
        allocations = response.read(body, "allocations", dict)
        if not allocations:
            # Placement answers 200 for an unknown uuid, without generation, project and user.
            return cls(uuid=uuid)
        return cls(
            uuid=uuid,
            allocations=Portion.by_id(
                {
                    provider: read_amounts(response, allocation, "resources")
                    for provider, allocation in allocations.items()
                }
            ),
            generation=response.read(body, "consumer_generation", int),
            project_id=response.read(body, "project_id", str),
            user_id=response.read(body, "user_id", str),
            consumer_type=_consumer_type(response, body),
        )

    def to_json(self, *, with_type: bool) -> dict[str, object]:
        """Return the body of a request to set the allocations.

        :param with_type: include the consumer type. Microversion 1.38 requires it, and
            older microversions refuse it.
        """
        body: dict[str, object] = {
            "allocations": {
                provider: {"resources": amounts}
                for provider, amounts in self.allocations.to_json().items()
            },
            "consumer_generation": self.generation,
            "project_id": self.project_id,
            "user_id": self.user_id,
        }
        return {**body, "consumer_type": self.consumer_type} if with_type else body


def _consumer_type(response: PlacementResponse, body: dict[str, object]) -> str:
    """Return the consumer type.

    Placement calls the type of consumers that were written before microversion 1.38
    ``unknown``. Most of these consumers are servers, so ``INSTANCE`` is returned.
    """
    if body.get("consumer_type", "unknown") == "unknown":
        return INSTANCE
    return response.read(body, "consumer_type", str)
