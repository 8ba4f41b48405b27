"""Holdings: the amounts that consumers have of resource providers.

Placement's API nests this as consumer, provider, resource class and amount. Here it is two values:
a :class:`Portion` (provider to amounts) and :class:`Holdings` (consumer to portion). Both are read
like mappings, and never change. A provider is named either by its uuid or by its name, and mypy
tells a ``Portion[ProviderId]`` from a ``Portion[ProviderName]``. JSON is read and written at the
edges, in :mod:`cpu_tiers.placement.records` and :mod:`cpu_tiers.tools.writers.plan_file`. Pure.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, NewType, TypeVar

ConsumerId = NewType("ConsumerId", str)
"""The uuid of a consumer: of a server, or of a migration."""

ProviderId = NewType("ProviderId", str)
"""The uuid of a resource provider."""

ProviderName = NewType("ProviderName", str)
"""The name of a resource provider; Placement keeps names unique."""

Amounts = Mapping[str, int]
"""Resource class to amount."""

P = TypeVar("P", bound=str)
"""How providers are named: by :data:`ProviderId` or by :data:`ProviderName`."""

Q = TypeVar("Q", bound=str)
K = TypeVar("K", bound=str)
V = TypeVar("V")


@dataclass(frozen=True, slots=True, eq=False)
class _Held(Mapping[K, V]):
    """A mapping that never changes, and is compared by value."""

    entries: Mapping[K, V] = field(default_factory=dict)

    def __getitem__(self, key: K) -> V:
        return self.entries[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __hash__(self) -> int:
        return hash(frozenset(self))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Portion(_Held[P, Amounts], Generic[P]):
    """Amounts by provider, for example the allocations of a consumer.

    :param entries: amounts of 0, which Placement does not store either, are dropped, and so are
        providers without any amount.
    """

    def __post_init__(self) -> None:
        """Copy the amounts: a later change of the argument has no effect."""
        positive = {
            provider: MappingProxyType({name: n for name, n in amounts.items() if n})
            for provider, amounts in self.entries.items()
        }
        kept = {provider: amounts for provider, amounts in positive.items() if amounts}
        object.__setattr__(self, "entries", kept)

    @staticmethod
    def by_id(amounts: Mapping[Q, Amounts]) -> "Portion[ProviderId]":
        """Return a portion whose providers are named by their uuids."""
        return Portion({ProviderId(uuid): a for uuid, a in amounts.items()})

    @staticmethod
    def by_name(amounts: Mapping[Q, Amounts]) -> "Portion[ProviderName]":
        """Return a portion whose providers are named by their names."""
        return Portion({ProviderName(name): a for name, a in amounts.items()})

    def __repr__(self) -> str:
        """Return the amounts as nested dicts."""
        return f"Portion({self.to_json()})"

    def of(self, provider: P) -> Amounts:
        """Return the amounts of any provider: empty if the portion has nothing of it."""
        return self.get(provider, {})

    def __add__(self, other: "Portion[P]") -> "Portion[P]":
        """Return the sum of two portions."""
        return sum_portions((self, other))

    def __sub__(self, other: "Portion[P]") -> "Portion[P]":
        """Return the excess of this portion over another portion.

        No amount becomes negative, as with ``collections.Counter``:
        ``wanted - held`` is the missing portion, ``held - freed`` the remaining.
        """
        return Portion(
            {
                provider: {n: max(0, a - other.of(provider).get(n, 0)) for n, a in amounts.items()}
                for provider, amounts in self.items()
            }
        )

    @property
    def total(self) -> dict[str, int]:
        """The amounts of all providers together, by resource class."""
        total = Counter[str]()
        for amounts in self.values():
            total.update(amounts)
        return dict(total)

    def only(self, providers: Collection[P]) -> "Portion[P]":
        """Return the amounts of some of the providers."""
        return Portion({provider: a for provider, a in self.items() if provider in providers})

    def without(self, provider: P) -> "Portion[P]":
        """Return the amounts of all providers but one."""
        return Portion({other: a for other, a in self.items() if other != provider})

    def renamed(self, new_name: Callable[[P], Q]) -> "Portion[Q]":
        """Return a portion in which a provider has its uuid for its name, or its name."""
        return Portion({new_name(provider): amounts for provider, amounts in self.items()})

    def to_json(self) -> dict[str, dict[str, int]]:
        """Return new dicts, as JSON and Nova want them."""
        return {provider: dict(amounts) for provider, amounts in self.items()}


def sum_portions(portions: Iterable[Portion[P]]) -> Portion[P]:
    """Return the sum of portions."""
    total: dict[P, Counter[str]] = {}
    for portion in portions:
        for provider, amounts in portion.items():
            total.setdefault(provider, Counter()).update(amounts)
    return Portion(total)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Holdings(_Held[ConsumerId, Portion[P]], Generic[P]):
    """Portions by consumer, for example of all consumers of a host.

    :param entries: a consumer with an empty portion is dropped: Placement forgets it, too.
    """

    def __post_init__(self) -> None:
        """Copy the portions."""
        kept = {consumer: portion for consumer, portion in self.entries.items() if portion}
        object.__setattr__(self, "entries", kept)

    @staticmethod
    def by_name(portions: Mapping[Q, Mapping[str, Amounts]]) -> "Holdings[ProviderName]":
        """Return holdings whose providers are named by their names."""
        return Holdings({ConsumerId(c): Portion.by_name(body) for c, body in portions.items()})

    def __repr__(self) -> str:
        """Return the portions as nested dicts."""
        return f"Holdings({ {c: portion.to_json() for c, portion in self.items()} })"

    def of(self, consumer: ConsumerId) -> Portion[P]:
        """Return the portion of any consumer: empty if it holds nothing."""
        return self.get(consumer, Portion())

    def of_provider(self, provider: P) -> dict[ConsumerId, Amounts]:
        """Return the amounts of one provider by consumer, for consumers with any."""
        return {c: portion[provider] for c, portion in self.items() if provider in portion}

    def __add__(self, other: "Holdings[P]") -> "Holdings[P]":
        """Return the sum of the portions of each consumer."""
        consumers = dict.fromkeys((*self, *other))
        return Holdings({c: self.of(c) + other.of(c) for c in consumers})

    @property
    def total(self) -> Portion[P]:
        """The sum of all portions: the used amounts of each provider."""
        return sum_portions(self.values())

    @property
    def amounts(self) -> dict[ConsumerId, Amounts]:
        """The amounts of each consumer, over all providers."""
        return {consumer: portion.total for consumer, portion in self.items()}
