"""The rows of ``cpu-tiers simulate``: the outcomes of a policy with several seeds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean
from typing import Any

from cpu_tiers.cli.formatting import FormattedValue
from cpu_tiers.simulation.run import Outcome
from cpu_tiers.simulation.scheduler import Demand

_MOST_FLAVORS = 4

COLUMNS = (
    "policy",
    "taken",
    "refused",
    "first_refused",
    "whole_hosts",
    "tiers",
    "floors",
    "flavors",
    "stranded",
)


def row(
    policy: str, outcomes: Sequence[Outcome], demands: Mapping[str, Demand]
) -> tuple[object, ...]:
    """Return the row of a policy."""
    tiers = {name: demand.tier or "none" for name, demand in demands.items()}
    first = [o.first_refused[0] for o in outcomes if o.first_refused is not None]
    return (
        policy,
        _spread([sum(outcome.taken.values()) for outcome in outcomes]),
        _spread([sum(outcome.refused.values()) for outcome in outcomes]),
        _spread(first),
        _spread([outcome.whole_hosts for outcome in outcomes]),
        _shares(outcomes, tiers),
        _floors(outcomes),
        _shares(outcomes, {name: name for name in demands}, most=_MOST_FLAVORS),
        _stranded(outcomes),
    )


def _spread(numbers: Sequence[int]) -> FormattedValue | None:
    """Return the mean, the least and the most; ``None`` without numbers."""
    if not numbers:
        return None
    value = {"mean": fmean(numbers), "least": min(numbers), "most": max(numbers)}
    return FormattedValue(value, _spread_text)


def _spread_text(value: Mapping[str, float]) -> str:
    if value["least"] == value["most"]:
        return f"{value['least']:g}"
    return f"{value['mean']:.0f} ({value['least']:g}-{value['most']:g})"


def _shares(
    outcomes: Sequence[Outcome], labels: Mapping[str, str], most: int | None = None
) -> FormattedValue:
    """Return how many servers of each label were taken and refused, on average.

    :param most: the text has only labels with refused servers, and at most this number of labels.
    """
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
    return FormattedValue(value, partial(_shares_text, most))


def _shares_text(most: int | None, value: Mapping[str, Mapping[str, float]]) -> str:
    parts = {
        label: 100 * of["taken"] / (of["taken"] + of["refused"])
        for label, of in value.items()
        if of["taken"] + of["refused"]
    }
    if most is not None:
        parts = dict(sorted(parts.items(), key=lambda item: item[1]))
        parts = {label: part for label, part in parts.items() if part < 100}
    lines = [f"{label}: {part:.1f} %" for label, part in parts.items()]
    if most is not None and len(lines) > most:
        lines[most:] = [f"and {len(lines) - most} more"]
    return "\n".join(lines)


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
    return FormattedValue(value, _floors_text)


def _floors_text(value: Mapping[str, Mapping[str, float]]) -> str:
    return "\n".join(
        f"{tier}: {100 * of['floor_kept'] / of['servers']:.0f} % (least {of['least_floor']:.2f})"
        for tier, of in value.items()
    )


def _stranded(outcomes: Sequence[Outcome]) -> FormattedValue:
    """Return the free amounts, and the part of it that no flavor can use, on average."""
    value: dict[str, Any] = {
        name: {
            "free": fmean(outcome.free[name] for outcome in outcomes),
            "stranded": fmean(outcome.stranded.get(name, 0) for outcome in outcomes),
        }
        for name in sorted(outcomes[0].free)
    }
    return FormattedValue(value, _stranded_text)


def _stranded_text(value: Mapping[str, Mapping[str, float]]) -> str:
    return "\n".join(
        f"{name}: {100 * of['stranded'] / of['free']:.0f} %"
        for name, of in value.items()
        if of["stranded"]
    )
