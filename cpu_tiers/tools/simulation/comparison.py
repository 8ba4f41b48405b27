"""The policy that refuses the least of equal requests, and whether the seeds agree. Pure.

The policies get the same requests with each seed, so their results are compared seed by seed. Two
policies that are equally good differ in the same direction with all of five seeds once in 16
comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import NamedTuple

from cpu_tiers.tools.simulation.run import Outcome

ENOUGH_SEEDS = 5
"""With fewer seeds, a difference in the same direction with each seed says little."""

CORE_HOURS = "core-hours"
SERVERS = "servers"

Results = Mapping[str, Sequence[Outcome]]
"""The outcomes of each policy, one for each seed."""


class Spread(NamedTuple):
    """The mean, the least and the most of the numbers of several seeds."""

    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, numbers: Sequence[float]) -> Spread:
        """Return the spread of at least one number."""
        return cls(fmean(numbers), min(numbers), max(numbers))


class Comparison(NamedTuple):
    """The policies, compared by the refused servers.

    :param measure: what is compared, :data:`CORE_HOURS` or :data:`SERVERS`.
    :param refused: the refused part of the requests, from 0 to 1, by policy.
    :param behind: how much greater the part is than that of the best policy, seed by seed.
    """

    measure: str
    seeds: int
    refused: Mapping[str, Spread]
    behind: Mapping[str, Spread]

    @property
    def best(self) -> str:
        """Return the first policy with the fewest refused servers."""
        return min(self.refused, key=lambda policy: self.refused[policy].mean)

    def is_clear(self, policy: str) -> bool:
        """Tell whether a policy refuses more than the best by more than the spread of the seeds.

        The policy must do so with each seed, and the seeds must be enough.
        """
        return self.seeds >= ENOUGH_SEEDS and self.behind[policy].least > 0


def compare(results: Results, measure: str | None = None) -> Comparison:
    """Return the comparison of policies.

    :param results: of at least one policy and one seed.
    :param measure: by default, the core-hours if requests have lifetimes, or else the servers.
    """
    if measure is None:
        first = next(iter(results.values()))
        measure = SERVERS if first[0].refused_core_hours is None else CORE_HOURS
    parts = {
        policy: [_part(one, measure) for one in outcomes] for policy, outcomes in results.items()
    }
    best = min(parts.values(), key=fmean)
    return Comparison(
        measure=measure,
        seeds=len(best),
        refused={policy: Spread.of(policy_parts) for policy, policy_parts in parts.items()},
        behind={
            policy: Spread.of(
                [part - least for part, least in zip(policy_parts, best, strict=True)]
            )
            for policy, policy_parts in parts.items()
        },
    )


def _part(outcome: Outcome, measure: str) -> float:
    if measure == CORE_HOURS:
        return outcome.refused_core_hours or 0.0
    refused = sum(outcome.refused.values())
    total = refused + sum(outcome.taken.values())
    return refused / total if total else 0.0


def verdict(results: Results, *, has_same_requests: bool = False) -> list[str]:
    """Return in words the policy that refuses the least, its distance, and the certainty.

    :param has_same_requests: whether the requests are the same with each seed.
    :returns: paragraphs.
    """
    comparison = compare(results)
    texts = [_first(comparison)]
    worse = [policy for policy in comparison.refused if comparison.is_clear(policy)]
    if worse and not _is_best_clear(comparison):
        worse.sort(key=lambda policy: -comparison.behind[policy].mean)
        points = (f"{name} ({_points(comparison.behind[name].mean)} more)" for name in worse)
        texts.append(f"Refuse more than {comparison.best}, with each seed: {', '.join(points)}.")
    if comparison.measure == CORE_HOURS:
        servers = compare(results, SERVERS)
        if servers.refused[servers.best].mean < servers.refused[comparison.best].mean:
            texts.append(
                f"{servers.best} refuses the smallest number of servers:"
                f" {_percent(servers.refused[servers.best].mean)} of the servers."
            )
    else:
        texts.append("No request has a lifetime, so servers are compared, and no core-hours.")
    if has_same_requests and comparison.seeds > 1:
        texts.append(
            "The seeds only choose among hosts of the same weight. Other requests may differ more."
        )
    return texts


def _first(comparison: Comparison) -> str:
    best, seeds = comparison.best, comparison.seeds
    average = f", on average of {seeds} seeds" if seeds > 1 else ""
    part = f"{_percent(comparison.refused[best].mean)} of the {comparison.measure}{average}"
    others = sorted(
        (policy for policy in comparison.refused if policy != best),
        key=lambda policy: comparison.behind[policy].mean,
    )
    if not others:
        return f"{best} refuses {part}."
    if not any(spread.most for spread in comparison.refused.values()):
        return "No policy refuses a server, so the requests do not tell the policies apart."
    following = comparison.behind[others[0]]
    if not any(any(comparison.behind[policy]) for policy in others):
        return f"All policies refuse the same: {part}."
    spread = f" ({100 * following.least:.1f} to {100 * following.most:.1f} by seed)"
    less = f"{_points(following.mean)} less than {others[0]}, the next{spread * (seeds > 1)}"
    if _is_best_clear(comparison):
        return (
            f"{best} is the best: it refuses {part}, {less}."
            " That is more than the spread of the seeds."
        )
    doubt = "That is not more than the spread of the seeds."
    if seeds < ENOUGH_SEEDS:
        doubt = f"{seeds} seeds do not show the spread; give --seeds {ENOUGH_SEEDS} or more."
        doubt = doubt.replace("1 seeds do", "One seed does")
    return f"No policy is clearly the best. {best} refuses {part}, {less}. {doubt}"


def _is_best_clear(comparison: Comparison) -> bool:
    return all(comparison.is_clear(name) for name in comparison.refused if name != comparison.best)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _points(part: float) -> str:
    return f"{100 * part:.1f} percentage points"
