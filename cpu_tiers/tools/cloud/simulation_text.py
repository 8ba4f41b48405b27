"""The text of ``cpu-tiers simulate``: a verdict, and a table with a column for each policy."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cpu_tiers.errors import printable
from cpu_tiers.tools.frame.terminal import wrapped
from cpu_tiers.tools.simulation.comparison import Comparison, Spread
from cpu_tiers.tools.simulation.run import Demand, Outcome
from cpu_tiers.tools.tiers.tier import NO_TIER

_LABEL_CELLS = 24
_MOST_FLAVORS = 5
_LEAST_CELLS, _MOST_CELLS = 7, 22
"""The width of the column of a policy; a longer name is broken."""

Values = Mapping[str, Any]
"""The values of a policy by the name of the column, as JSON has them."""

Line = tuple[str, Sequence[str]]
"""A label and the text of each policy."""


def print_simulation(
    console: Console, policies: Sequence[Values], verdict: Iterable[str], *, show_all: bool
) -> None:
    """Print the verdict, and the policies side by side."""
    for text in verdict:
        console.print(Text(wrapped(printable(text))))
    for block in _blocks(policies, console.width):
        console.print()
        console.print(_table(block, show_all=show_all))


def _blocks(policies: Sequence[Values], columns: int) -> Iterator[list[Values]]:
    block: list[Values] = []
    free = columns - _LABEL_CELLS - 1
    for policy in policies:
        name = min(_MOST_CELLS, cell_len(printable(policy["policy"])))
        needed = max(_LEAST_CELLS, name) + 2
        if block and needed > free:
            yield block
            block, free = [], columns - _LABEL_CELLS - 1
        block.append(policy)
        free -= needed
    yield block


def _table(policies: Sequence[Values], *, show_all: bool) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0))
    table.add_column("mean of the seeds", overflow="fold", max_width=_LABEL_CELLS)
    for policy in policies:
        name = Text(printable(policy["policy"]))
        table.add_column(name, justify="right", overflow="fold", max_width=_MOST_CELLS)
    for title, lines in _sections(policies, show_all=show_all):
        if title and lines:
            table.add_section()
            table.add_row(Text(title, "bold"))
        for label, texts in lines:
            table.add_row(Text(f"  {printable(label)}" if title else label), *texts)
    return table


def _sections(policies: Sequence[Values], *, show_all: bool) -> Iterator[tuple[str, list[Line]]]:
    yield "", [*_servers(policies)]
    yield "Taken, by tier", _parts(policies, "tiers", _taken)
    yield (
        "Floors kept, by tier",
        _parts(policies, "floors", lambda floors: _part(floors["floor_kept"], floors["servers"])),
    )
    if any(
        floors["least_floor"] < 1 for policy in policies for floors in policy["floors"].values()
    ):
        least = _parts(policies, "floors", lambda floors: f"{floors['least_floor']:.2f}")
        yield "Least floor, by tier", least
    flavors = [
        line for line in _parts(policies, "flavors", _taken) if set(line[1]) - {"100 %", "-"}
    ]
    if not show_all and len(flavors) > _MOST_FLAVORS:
        flavors.sort(key=lambda line: _least_taken(policies, line[0]))
        flavors[_MOST_FLAVORS:] = [(f"{len(flavors) - _MOST_FLAVORS} more: --all", ())]
    yield "Taken, by flavor", flavors
    stranded = _parts(
        policies, "stranded", lambda amounts: _part(amounts["stranded"], amounts["free"])
    )
    yield "Stranded at the end", [line for line in stranded if set(line[1]) - {"0 %", "-"}]


def _servers(policies: Sequence[Values]) -> Iterator[Line]:
    yield "servers taken", _column(policies, "taken", "mean", "{:,.0f}".format)
    yield "servers refused", _column(policies, "refused", "mean", "{:,.0f}".format)
    if any(policy["refused"]["least"] != policy["refused"]["most"] for policy in policies):
        yield "  least", _column(policies, "refused", "least", "{:,.0f}".format)
        yield "  most", _column(policies, "refused", "most", "{:,.0f}".format)
    hours = "refused_core_hours"
    yield "core-hours refused", _column(policies, hours, "mean", lambda p: f"{100 * p:.1f} %")
    yield "first refused request", _column(policies, "first_refused", "mean", "{:,.0f}".format)
    yield "empty hosts, over time", _column(policies, "empty_hosts", "mean", "{:,.1f}".format)
    yield "empty hosts, at the end", _column(policies, "whole_hosts", "mean", "{:,.1f}".format)


def _column(
    policies: Sequence[Values], name: str, figure: str, show: Callable[[float], str]
) -> Sequence[str]:
    return ["-" if policy[name] is None else show(policy[name][figure]) for policy in policies]


def _parts(
    policies: Sequence[Values], name: str, show: Callable[[Mapping[str, float]], str]
) -> list[Line]:
    """Return a line for each label of a column of which the values have labels."""
    labels = sorted({label for policy in policies for label in policy[name]})
    return [
        (
            label,
            [show(policy[name][label]) if label in policy[name] else "-" for policy in policies],
        )
        for label in labels
    ]


def _taken(value: Mapping[str, float]) -> str:
    return _part(value["taken"], value["taken"] + value["refused"])


def _least_taken(policies: Sequence[Values], flavor: str) -> float:
    values: list[Mapping[str, float]] = [policy["flavors"][flavor] for policy in policies]
    totals = [value["taken"] + value["refused"] for value in values]
    return min(v["taken"] / total for v, total in zip(values, totals, strict=True) if total)


def _part(part: float, whole: float) -> str:
    """Return a part in percent; 100 % and 0 % are exact."""
    if not whole:
        return "-"
    if part in (0, whole):
        return "100 %" if part else "0 %"
    return f"{100 * part / whole:.1f} %"


def policy_values(
    policy: str,
    outcomes: Sequence[Outcome],
    demands: Mapping[str, Demand],
    comparison: Comparison,
) -> Values:
    """Return the values of a policy."""
    core_hours = [o.refused_core_hours for o in outcomes if o.refused_core_hours is not None]
    first = [o.first_refused[0] for o in outcomes if o.first_refused is not None]
    return {
        "policy": policy,
        "taken": _spread([sum(outcome.taken.values()) for outcome in outcomes]),
        "refused": _spread([sum(outcome.refused.values()) for outcome in outcomes]),
        "refused_core_hours": _spread(core_hours),
        "behind_best": comparison.behind[policy]._asdict(),
        "first_refused": _spread(first),
        "empty_hosts": _spread([outcome.empty_hosts for outcome in outcomes]),
        "whole_hosts": _spread([outcome.whole_hosts for outcome in outcomes]),
        "tiers": _counts(outcomes, tier_names(demands)),
        "floors": _floors(outcomes),
        "flavors": _counts(outcomes, {name: name for name in demands}),
        "stranded": _stranded(outcomes),
    }


def tier_names(demands: Mapping[str, Demand]) -> Mapping[str, str]:
    """Return the name of the tier of each flavor."""
    return {name: demand.tier or NO_TIER for name, demand in demands.items()}


def _spread(numbers: Sequence[float]) -> Mapping[str, float] | None:
    """Return the mean, the least and the most; ``None`` without numbers."""
    return Spread.of(numbers)._asdict() if numbers else None


def _counts(
    outcomes: Sequence[Outcome], labels: Mapping[str, str]
) -> Mapping[str, Mapping[str, float]]:
    """Return how many servers of each label were taken and refused, on average."""
    taken: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for outcome in outcomes:
        for name, label in labels.items():
            taken[label] += outcome.taken.get(name, 0)
            refused[label] += outcome.refused.get(name, 0)
    count = len(outcomes)
    return {
        label: {"taken": taken[label] / count, "refused": refused[label] / count}
        for label in sorted(set(labels.values()))
    }


def _floors(outcomes: Sequence[Outcome]) -> Mapping[str, Mapping[str, float]]:
    """Return how many servers of each tier have the CPUs that they are promised, on average."""
    value = {}
    for tier in sorted({tier for outcome in outcomes for tier in outcome.floors}):
        tier_floors = [outcome.floors[tier] for outcome in outcomes if tier in outcome.floors]
        means, least = (
            ("servers", "floor_kept", "entitlement_kept"),
            ("least_floor", "least_entitlement"),
        )
        value[tier] = {
            **{k: sum(getattr(f, k) for f in tier_floors) / len(outcomes) for k in means},
            **{k: min(getattr(f, k) for f in tier_floors) for k in least},
        }
    return value


def _stranded(outcomes: Sequence[Outcome]) -> Mapping[str, Mapping[str, float]]:
    """Return the free amounts, and the part of it that no flavor can use, on average."""
    return {
        name: {
            "free": fmean(outcome.free[name] for outcome in outcomes),
            "stranded": fmean(outcome.stranded.get(name, 0) for outcome in outcomes),
        }
        for name in sorted(outcomes[0].free)
    }
