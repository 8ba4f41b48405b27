"""What a host has: inventories, providers and the tree they make.

Shapes and rules are Placement's (API reference, "Resource provider
inventories").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cpu_tiers.errors import FaultList
from cpu_tiers.model.names import MAX_AMOUNT

MAX_RATIO = 3.40282e38
"""The largest allocation ratio that Placement accepts."""

MAX_NAME = 200
"""Characters of a provider's name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """How much of one resource class a provider has.

    :param ratio_is_initial: ``allocation_ratio`` was not configured; it is
        for a new inventory, and one that Placement already has is kept, as
        Nova keeps what an operator set through the API.
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
        """Return what can be claimed: ``(total - reserved) * allocation_ratio``."""
        return int((self.total - self.reserved) * self.allocation_ratio)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceProvider:
    """A provider, its inventories by class, its traits, and its parent's name.

    :param uuid: where it follows from the name by a rule; else Placement's.
    """

    name: str
    parent: str | None = None
    uuid: str | None = None
    inventories: Mapping[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Check what Placement would refuse.

        :raises InvalidInput: an inventory that cannot be.
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
                    "reserve no more than there is",
                )
            if not 0 < inventory.allocation_ratio <= MAX_RATIO:
                given = f"allocation ratio {inventory.allocation_ratio}"
                faults.add(where, given, f"it must be above 0 and up to {MAX_RATIO}")
        faults.raise_if_any()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderTree:
    """The providers of one host: the root first, each parent before its children.

    :param managed_classes: the resource classes that are ours to write and to
        remove; whatever else a provider has is left alone.
    :param managed_traits: how the names of those traits begin that are ours to
        remove, too; others are only added.
    :param root_is_foreign: the root is somebody else's: it must be there, and
        nothing of it is written.
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
        """Return the resource classes and the traits that Placement must know."""
        classes: Iterable[str] = (name for p in self.providers for name in p.inventories)
        traits: Iterable[str] = (name for p in self.providers for name in p.traits)
        return frozenset(classes), frozenset(traits)
