"""An HTTP response of Placement, which checks its JSON and returns the records in it.

A response may come from a proxy or from another service, so each key is checked.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from cpu_tiers.accounting.holdings import Amounts, Portion
from cpu_tiers.model.document import load_json
from cpu_tiers.model.inventory import MAX_CAPACITY, Inventory
from cpu_tiers.model.providers import Provider
from cpu_tiers.placement import records
from cpu_tiers.placement.errors import PlacementAnswerCutOff, PlacementAnswerInvalid
from cpu_tiers.placement.records import AMOUNTS, INSTANCE, Consumer, Inventories, Traits
from cpu_tiers.tools.http.retries import is_json_type

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)  # without slots, for the cached property
class PlacementResponse:
    """The response to the request ``method path``."""

    method: str
    path: str
    status: int
    content_type: str
    content: bytes
    retry_after: str = ""

    @cached_property
    def body(self) -> Any:
        """Return the parsed JSON of the body.

        :raises PlacementAnswerInvalid: the body is not JSON, or is nested too deep.
        """
        try:
            return load_json(self.content)
        except RecursionError as error:
            raise self.invalid("JSON that is nested too deep (does a proxy answer?)") from error
        except ValueError as error:
            is_cut_off = is_json_type(self.content_type)
            raise self.invalid(
                f"not valid JSON, content type {self.content_type or 'missing'}"
                " (is this the endpoint of Placement, or does a proxy answer?)",
                PlacementAnswerCutOff if is_cut_off else PlacementAnswerInvalid,
            ) from error

    def expect_status(self, *statuses: int) -> None:
        """Check the status of a response without a body, which a proxy may have sent.

        :raises PlacementAnswerInvalid: the status is not in ``statuses``.
        """
        if self.status not in statuses:
            allowed = " or ".join(map(str, statuses))
            raise self.invalid(
                f"not from Placement, which answers HTTP {allowed} (does a proxy answer?)"
            )

    def read(self, container: object, key: str, kind: type[T]) -> T:
        """Return ``container[key]``, checked to be of the type ``kind``.

        :raises PlacementAnswerInvalid: the key is missing, or its value has another type.
        """
        if not isinstance(container, dict) or key not in container:
            raise self.invalid(f"JSON without {key!r}")
        value = container[key]
        if not _is(value, kind):
            raise self.invalid(f"JSON whose {key!r} is not of type {kind.__name__}")
        if kind is int and abs(value) > MAX_CAPACITY:
            raise self.invalid(f"JSON whose {key!r} is larger than any amount of Placement")
        return value  # type: ignore[no-any-return]  # _is() made sure

    def invalid(
        self, what: str, kind: type[PlacementAnswerInvalid] = PlacementAnswerInvalid
    ) -> PlacementAnswerInvalid:
        """Return the error for a response that Placement would not send: "the answer is …"."""
        return kind(
            f"{self.method} {self.path}: the answer (HTTP {self.status}) is {what}",
            method=self.method,
            path=self.path,
            status=self.status,
        )

    def amounts(self, container: object, key: str) -> Amounts:
        """Return the amounts by resource class under a key of a part of the body.

        :raises PlacementAnswerInvalid: an amount is no whole number, or negative.
        """
        amounts = self.read(container, key, dict)
        for name in amounts:
            if self.read(amounts, name, int) < 0:
                raise self.invalid(f"JSON with {amounts[name]} of {name}")
        return amounts

    def provider(self, body: object) -> Provider:
        """Return the provider in a part of the body."""
        uuid = self.read(body, "uuid", str)
        is_root = self.read(body, "root_provider_uuid", str) == uuid
        parent = None if is_root else self.read(body, "parent_provider_uuid", str)
        return Provider(uuid=uuid, name=self.read(body, "name", str), parent=parent)

    def inventories(self) -> Inventories:
        """Return the inventories in the response of ``/resource_providers/…/inventories``."""
        by_class = self.read(self.body, "inventories", dict)
        return Inventories(
            generation=self.read(self.body, "resource_provider_generation", int),
            by_class={name: self._inventory(item) for name, item in by_class.items()},
        )

    def _inventory(self, body: object) -> Inventory:
        ratio = self.read(body, "allocation_ratio", float)
        if not math.isfinite(ratio):  # Python reads Infinity and NaN, which are no JSON
            raise self.invalid(f"JSON with the allocation_ratio {ratio}")
        amounts = {name: self.read(body, name, int) for name in AMOUNTS[:-1]}
        return records.read_inventory({**amounts, "allocation_ratio": ratio})

    def traits(self) -> Traits:
        """Return the traits in the response of ``/resource_providers/…/traits``."""
        return Traits(
            generation=self.read(self.body, "resource_provider_generation", int),
            names=frozenset(map(str, self.read(self.body, "traits", list))),
        )

    def consumer(self, uuid: str) -> Consumer:
        """Return the consumer in the response of ``/allocations/{uuid}``."""
        allocations = self.read(self.body, "allocations", dict)
        if not allocations:
            # Placement answers 200 for an unknown uuid, without generation, project and user.
            return Consumer(uuid=uuid)
        amounts = {
            provider: self.amounts(allocation, "resources")
            for provider, allocation in allocations.items()
        }
        # Consumers that were written before microversion 1.38 are of the type unknown. Most of
        # them are servers.
        is_unknown = self.body.get("consumer_type", "unknown") == "unknown"
        return Consumer(
            uuid=uuid,
            allocations=Portion.by_id(amounts),
            generation=self.read(self.body, "consumer_generation", int),
            project_id=self.read(self.body, "project_id", str),
            user_id=self.read(self.body, "user_id", str),
            consumer_type=INSTANCE if is_unknown else self.read(self.body, "consumer_type", str),
        )


def _is(value: object, kind: type[Any]) -> bool:
    if isinstance(value, bool):
        return kind is bool  # In Python bool is a subclass of int; in JSON true is no number.
    return isinstance(value, int | float if kind is float else kind)
