"""What Placement keeps, as its API shows it: providers, inventories, consumers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.response import PlacementResponse

INSTANCE = "INSTANCE"
"""The type of a consumer that is a server, as Nova names it."""

MIGRATION = "MIGRATION"
"""The type that holds a server's old allocations while it migrates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A resource provider; a root has no parent."""

    uuid: str
    name: str
    parent_uuid: str | None

    @classmethod
    def read(cls, answer: PlacementResponse, body: object) -> "Provider":
        """Read one provider out of an answer."""
        uuid = answer.read(body, "uuid", str)
        is_root = answer.read(body, "root_provider_uuid", str) == uuid
        return cls(
            uuid=uuid,
            name=answer.read(body, "name", str),
            parent_uuid=None if is_root else answer.read(body, "parent_provider_uuid", str),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventories:
    """The inventories of a provider by class, as of a generation."""

    generation: int
    by_class: Mapping[str, Inventory]

    @classmethod
    def read(cls, answer: PlacementResponse) -> "Inventories":
        """Read the answer of ``…/inventories``."""
        body = answer.body()
        by_class = answer.read(body, "inventories", dict)
        return cls(
            generation=answer.read(body, "resource_provider_generation", int),
            by_class={name: _read(answer, item) for name, item in by_class.items()},
        )

    def to_json(self) -> dict[str, object]:
        """Return the body that sets these inventories."""
        return {
            "resource_provider_generation": self.generation,
            "inventories": {name: inventory_json(item) for name, item in self.by_class.items()},
        }


def _read(answer: PlacementResponse, body: object) -> Inventory:
    return Inventory(
        total=answer.read(body, "total", int),
        reserved=answer.read(body, "reserved", int),
        min_unit=answer.read(body, "min_unit", int),
        max_unit=answer.read(body, "max_unit", int),
        step_size=answer.read(body, "step_size", int),
        allocation_ratio=answer.read(body, "allocation_ratio", float),
    )


AMOUNTS = ("total", "reserved", "min_unit", "max_unit", "step_size", "allocation_ratio")
"""What an inventory is made of, in Placement's shape and in ours."""


def read_inventory(body: Mapping[str, Any]) -> Inventory:
    """Return an inventory that is known to have Placement's shape."""
    return Inventory(**{name: body[name] for name in AMOUNTS})


def inventory_json(inventory: Inventory) -> dict[str, float]:
    """Return an inventory in Placement's shape."""
    return {name: getattr(inventory, name) for name in AMOUNTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """The traits of a provider, as of a generation."""

    generation: int
    names: frozenset[str]

    @classmethod
    def read(cls, answer: PlacementResponse) -> "Traits":
        """Read the answer of ``/resource_providers/…/traits``."""
        body = answer.body()
        return cls(
            generation=answer.read(body, "resource_provider_generation", int),
            names=frozenset(map(str, answer.read(body, "traits", list))),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumer:
    """A consumer of resources, such as a server or a migration.

    :param allocations: provider uuid to resource class to amount; empty for a
        consumer that Placement does not know.
    :param generation: None for a consumer that Placement does not know.
    :param consumer_type: such as ``INSTANCE`` or ``MIGRATION``.
    """

    uuid: str
    allocations: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    generation: int | None = None
    project_id: str = ""
    user_id: str = ""
    consumer_type: str = INSTANCE

    @classmethod
    def read(cls, uuid: str, answer: PlacementResponse) -> "Consumer":
        """Read the answer of ``/allocations/{uuid}``."""
        body = answer.body()
        allocations = answer.read(body, "allocations", dict)
        if not allocations:
            return cls(uuid=uuid)
        return cls(
            uuid=uuid,
            allocations={
                rp: answer.read(allocation, "resources", dict)
                for rp, allocation in allocations.items()
            },
            generation=answer.read(body, "consumer_generation", int),
            project_id=answer.read(body, "project_id", str),
            user_id=answer.read(body, "user_id", str),
            consumer_type=_consumer_type(answer, body),
        )

    def to_json(self, *, with_type: bool) -> dict[str, object]:
        """Return the body that sets these allocations.

        :param with_type: microversion 1.38 demands the type, older ones refuse it.
        """
        body: dict[str, object] = {
            "allocations": {rp: {"resources": dict(r)} for rp, r in self.allocations.items()},
            "consumer_generation": self.generation,
            "project_id": self.project_id,
            "user_id": self.user_id,
        }
        return {**body, "consumer_type": self.consumer_type} if with_type else body


def _consumer_type(answer: PlacementResponse, body: dict[str, object]) -> str:
    """Return the type; one from before microversion 1.38 was a server in all likelihood."""
    if body.get("consumer_type", "unknown") == "unknown":
        return INSTANCE
    return answer.read(body, "consumer_type", str)
