"""Inventories, resource providers and the provider tree of a host.

Fields and limits are Placement's (API reference, "Resource provider inventories").
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from cpu_tiers.errors import FaultList
from cpu_tiers.model.names import MAX_AMOUNT

MAX_RATIO = 3.40282e38
"""The largest allocation ratio that Placement accepts."""

MAX_CAPACITY = int(MAX_AMOUNT * MAX_RATIO)
"""No capacity, and no sum of amounts, of Placement is larger."""

MAX_NAME = 200
"""The largest length of a provider's name in Placement."""


class ClaimUnits(NamedTuple):
    """The amounts that a single claim of an inventory may have."""

    min_unit: int = 1
    max_unit: int = MAX_AMOUNT
    step_size: int = 1

    def refusing(self, amount: int) -> str:
        """Return the name of the unit that refuses an amount; empty if the amount is allowed.

        Source: Placement, ``objects/allocation.py``, ``_check_capacity_exceeded``.
        """
        if amount > self.max_unit:
            return "max_unit"
        if amount < self.min_unit:
            return "min_unit"
        return "step_size" if amount % self.step_size else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The inventory of a resource class of a provider.

    :param ratio_is_initial: whether ``allocation_ratio`` is the initial ratio, because
        no ratio is configured. An initial ratio is written with a new inventory. The
        ratio of an inventory that Placement already has is kept, as Nova keeps a
        ratio that an operator set through the API.
    """

    total: int
    reserved: int = 0
    min_unit: int = 1
    max_unit: int
    step_size: int = 1
    allocation_ratio: float = 1.0
    ratio_is_initial: bool = False

    @property
    def capacity(self) -> int:
        """Return the amount that can be claimed: ``(total - reserved) * allocation_ratio``."""
        # Truncated, as placement.objects.inventory.Inventory.capacity is.
        return int((self.total - self.reserved) * self.allocation_ratio)

    @property
    def limit(self) -> int:
        """Return the capacity as if nothing was reserved."""
        return int(self.total * self.allocation_ratio)

    @property
    def is_reserved_whole(self) -> bool:
        """Tell whether all is reserved, as by Nova for a used node of Ironic."""
        return self.reserved >= self.total

    @property
    def units(self) -> ClaimUnits:
        """Return the amounts that a single claim may have."""
        return ClaimUnits(self.min_unit, self.max_unit, self.step_size)

    def refusing(self, amount: int, left: int) -> str:
        """Return what keeps a claim from an amount: a unit or ``capacity``; empty for nothing.

        :param left: the capacity that no consumer holds; negative if an operator
            has made the inventory smaller than what is held.
        """
        unit = self.units.refusing(amount)
        return unit if unit == "max_unit" or amount <= left else "capacity"


def limit_of(name: str, amount: int, inventory: Inventory | None, left: int) -> str:
    """Return why a server cannot have an amount of an inventory; empty if it can.

    :param name: what the amount is of, for the text: the resource class.
    :param inventory: ``None`` if the provider has no such inventory.
    :param left: see :meth:`Inventory.refusing`.
    """
    if inventory is None:
        return f"{amount} {name}: there is no inventory of it"
    reasons = {
        "": "",
        "max_unit": f"one server may have at most {inventory.max_unit} (max_unit)",
        "capacity": f"only {max(left, 0)} of {inventory.capacity} are left",
        "min_unit": f"less than min_unit {inventory.min_unit}",
        "step_size": f"not a multiple of step_size {inventory.step_size}",
    }
    reason = reasons[inventory.refusing(amount, left)]
    return reason and f"{amount} {name}: {reason}"


def limits_of(
    amounts: Mapping[str, int], inventories: Mapping[str, Inventory], left: Mapping[str, int]
) -> str:
    """Return why a server cannot have all these amounts; empty if it can: :func:`limit_of`."""
    limits = (
        limit_of(name, amount, inventories.get(name), left.get(name, 0))
        for name, amount in amounts.items()
    )
    return "; ".join(filter(None, limits))


def divide_reserved(amount: int, totals: Sequence[int]) -> tuple[int, ...]:
    """Divide a reserved amount evenly among providers, no more than each of them has.

    3 among 8 and 8 is 2 and 1; 6 among 1 and 8 is 1 and 5. The first provider gets the excess over
    all totals together, so that :class:`ResourceProvider` refuses its inventory.

    :param totals: how much each provider has.
    """
    parts = [0] * len(totals)
    while amount and (not_full := [i for i, total in enumerate(totals) if parts[i] < total]):
        each = max(1, amount // len(not_full))
        for i in not_full:
            part = min(each, totals[i] - parts[i], amount)
            parts[i] += part
            amount -= part
    return tuple(part + (amount if i == 0 else 0) for i, part in enumerate(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProvider:
    """A resource provider: inventories by resource class, traits, and the parent's name.

    :param uuid: the uuid, if it follows from the name by a rule; ``None`` if Placement
        chooses the uuid.
    """

    name: str
    parent: str | None = None
    uuid: str | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check the limits of Placement, before anything of the tree is written.

        :raises InvalidInput: Placement would refuse the name or an inventory.
        """
        faults = FaultList()
        if not 1 <= len(self.name) <= MAX_NAME:
            given = f"a name of {len(self.name)} characters"
            faults.add(f"resource provider {self.name}", given, f"it must have 1 to {MAX_NAME}")
        for name, inventory in self.inventories.items():
            where = f"resource provider {self.name}, {name}"
            if not 1 <= inventory.total <= MAX_AMOUNT:
                faults.add(where, f"total {inventory.total}", f"it must be 1 to {MAX_AMOUNT}")
            if not 0 <= inventory.reserved <= inventory.total:
                faults.add(
                    where,
                    f"reserved {inventory.reserved} of total {inventory.total}",
                    "reserve at most the total",
                )
            if not 0 < inventory.allocation_ratio <= MAX_RATIO:
                given = f"allocation ratio {inventory.allocation_ratio}"
                faults.add(where, given, f"it must be above 0 and up to {MAX_RATIO}")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTree:
    """The providers of a host: the root first, each parent before its children.

    :param managed_classes: the resource classes that cpu-tiers writes and removes.
        Other inventories of a provider are left alone.
    :param managed_traits: prefixes of the names of traits that cpu-tiers may remove.
        Other traits are only added.
    :param root_is_foreign: whether Nova owns the root provider. A foreign root must
        exist in Placement, and nothing of it is written.
    """

    providers: tuple[ResourceProvider, ...]
    managed_classes: frozenset[str]
    managed_traits: tuple[str, ...] = ()
    root_is_foreign: bool = False

    @property
    def root(self) -> ResourceProvider:
        """Return the provider of the host itself."""
        return self.providers[0]

    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        """Return all resource classes and traits, which must exist in Placement first."""
        classes: Iterable[str] = (name for p in self.providers for name in p.inventories)
        traits: Iterable[str] = (name for p in self.providers for name in p.traits)
        return frozenset(classes), frozenset(traits)
