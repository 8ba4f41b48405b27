"""What is held of providers, and sums of it. Pure."""

from collections.abc import Iterable, Mapping

Portion = Mapping[str, Mapping[str, int]]
"""Provider to resource class to amount."""

Holdings = Mapping[str, Portion]
"""Consumer to what it holds."""


def joined(portions: Iterable[Portion]) -> dict[str, dict[str, int]]:
    """Return the sum of portions."""
    total: dict[str, dict[str, int]] = {}
    for portion in portions:
        for provider, amounts in portion.items():
            of_provider = total.setdefault(provider, {})
            for name, amount in amounts.items():
                of_provider[name] = of_provider.get(name, 0) + amount
    return total


def total(portion: Portion) -> dict[str, int]:
    """Return what a portion has of all providers together, by resource class."""
    return joined({"": amounts} for amounts in portion.values()).get("", {})


def total_of(held: Holdings) -> dict[str, dict[str, int]]:
    """Return what each consumer holds of all providers together."""
    return {consumer: total(portion) for consumer, portion in held.items()}
