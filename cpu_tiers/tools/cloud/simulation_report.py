"""The rows of ``cpu-tiers simulate``: the outcomes of a policy with several seeds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from cpu_tiers.guest.tier import NO_TIER
from cpu_tiers.tools.frame.formatting import FormattedValue
from cpu_tiers.tools.simulation.comparison import Comparison, Spread
from cpu_tiers.tools.simulation.run import Outcome
from cpu_tiers.tools.simulation.scheduler import Demand

COLUMNS = (
    "policy",
    "taken",
    "refused",
    "refused_core_hours",
    "behind_best",
    "first_refused",
    "empty_hosts",
    "whole_hosts",
    "tiers",
    "floors",
    "flavors",
    "stranded",
)


def row(
    policy: str,
    outcomes: Sequence[Outcome],
    demands: Mapping[str, Demand],
    comparison: Comparison,
) -> tuple[object, ...]:
    """Return the row of a policy."""
    core_hours = [o.refused_core_hours for o in outcomes if o.refused_core_hours is not None]
    first = [o.first_refused[0] for o in outcomes if o.first_refused is not None]
    return (
        policy,
        _spread([sum(outcome.taken.values()) for outcome in outcomes]),
        _spread([sum(outcome.refused.values()) for outcome in outcomes]),
        _spread(core_hours),
        FormattedValue(comparison.behind[policy]._asdict(), str),
        _spread(first),
        _spread([outcome.empty_hosts for outcome in outcomes]),
        _spread([outcome.whole_hosts for outcome in outcomes]),
        _counts(outcomes, tier_names(demands)),
        _floors(outcomes),
        _counts(outcomes, {name: name for name in demands}),
        _stranded(outcomes),
    )


def tier_names(demands: Mapping[str, Demand]) -> Mapping[str, str]:
    """Return the name of the tier of each flavor."""
    return {name: demand.tier or NO_TIER for name, demand in demands.items()}


def _spread(numbers: Sequence[float]) -> FormattedValue | None:
    """Return the mean, the least and the most; ``None`` without numbers."""
    return FormattedValue(Spread.of(numbers)._asdict(), str) if numbers else None


def _counts(outcomes: Sequence[Outcome], labels: Mapping[str, str]) -> FormattedValue:
    """Return how many servers of each label were taken and refused, on average."""
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for outcome in outcomes:
        for name, label in labels.items():
            taken[label] += outcome.taken.get(name, 0)
            refused[label] += outcome.refused.get(name, 0)
    count = len(outcomes)
    value = {
        label: {"taken": taken[label] / count, "refused": refused[label] / count}
        for label in sorted(set(labels.values()))
    }
    return FormattedValue(value, str)


def _floors(outcomes: Sequence[Outcome]) -> FormattedValue:
    """Return how many servers of each tier have the CPUs that they are promised, on average."""
    value: dict[str, Any] = {}
    for tier in sorted({tier for outcome in outcomes for tier in outcome.floors}):
        of_tier = [outcome.floors[tier] for outcome in outcomes if tier in outcome.floors]
        value[tier] = {
            "servers": sum(floors.servers for floors in of_tier) / len(outcomes),
            "floor_kept": sum(floors.floor_kept for floors in of_tier) / len(outcomes),
            "fair_kept": sum(floors.fair_kept for floors in of_tier) / len(outcomes),
            "least_floor": min(floors.least_floor for floors in of_tier),
            "least_fair": min(floors.least_fair for floors in of_tier),
        }
    return FormattedValue(value, str)


def _stranded(outcomes: Sequence[Outcome]) -> FormattedValue:
    """Return the free amounts, and the part of it that no flavor can use, on average."""
    value: dict[str, Any] = {
        name: {
            "free": fmean(outcome.free[name] for outcome in outcomes),
            "stranded": fmean(outcome.stranded.get(name, 0) for outcome in outcomes),
        }
        for name in sorted(outcomes[0].free)
    }
    return FormattedValue(value, str)
