"""The page of a simulation: the servers taken by each policy, over time, by flavor and tier."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

import altair as alt

from cpu_tiers.tools.page.document import Page, PageChart, PageSection, Row
from cpu_tiers.tools.simulation.comparison import Results
from cpu_tiers.tools.simulation.run import Outcome

# The colors of Okabe and Ito, which people who cannot distinguish red from green tell apart.
_COLORS: Final = (
    *("#0072B2", "#E69F00", "#009E73", "#CC79A7"),
    *("#56B4E9", "#D55E00", "#000000", "#999999"),
)


def simulation_page(
    results: Results, tiers: Mapping[str, str], verdict: Sequence[str] = ()
) -> Page:
    """Return the page.

    :param tiers: the name of the tier of each flavor.
    :param verdict: the paragraphs that say which policy refuses the least.
    """
    policies = list(results)
    outcomes = next(iter(results.values()))
    course = outcomes[0].course if outcomes else ()
    requests = course[-1].request + 1 if course else 0
    datasets = {
        "tiers": _above_zero(_refused(results, tiers)),
        "flavors": _above_zero(_refused(results, {name: name for name in tiers})),
        "stranded": _above_zero(_stranded(results)),
    }
    return Page(
        title="Simulation",
        texts=[
            *verdict,
            f"{requests} requests for servers under {len(policies)} policies,"
            f" with {len(outcomes)} seeds. Lines and bars are means over the seeds; a thin line"
            " or a mark is a seed.",
        ],
        sections=[
            PageSection(key="seeds", title="Refused with each seed", parts=[_spread(policies)]),
            PageSection(key="time", title="Over time", parts=_over_time(policies)),
            *_sections_of_parts(policies, datasets),
        ],
        datasets={
            "course": list(_course(results)),
            "seeds": [
                {**fields, "servers": sum(outcome.refused.values())}
                for fields, outcome in _outcomes(results)
            ],
            **datasets,
        },
    )


def _sections_of_parts(
    policies: list[str], datasets: Mapping[str, Sequence[Row]]
) -> Iterator[PageSection]:
    refused = [
        _bars(policies, name, f"Refused servers of each {name.removesuffix('s')}", datasets[name])
        for name in ("tiers", "flavors")
        if datasets[name]
    ]
    if refused:
        yield PageSection(
            key="refused",
            title="Refused by tier and flavor",
            texts=["A tier or a flavor without a refused server has no bars."],
            parts=refused,
        )
    if datasets["stranded"]:
        yield PageSection(
            key="stranded",
            title="Stranded at the end",
            texts=[
                "The part of the free amount of each resource class that is on hosts without"
                " room for any of the flavors."
            ],
            parts=[_bars(policies, "stranded", "Stranded capacity", datasets["stranded"])],
        )


def _above_zero(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of the labels that have a part above 0 in any row."""
    rows = list(rows)
    labels = {row["label"] for row in rows if row["part"]}
    return [row for row in rows if row["label"] in labels]


def _outcomes(results: Results) -> Iterator[tuple[dict[str, str | int], Outcome]]:
    """Yield the outcome of each policy with each seed, and the two as fields of a row."""
    for policy, outcomes in results.items():
        for seed, outcome in enumerate(outcomes):
            yield {"policy": policy, "seed": seed}, outcome


def _course(results: Results) -> Iterator[Row]:
    for fields, outcome in _outcomes(results):
        for moment in outcome.course:
            for kind in ("running", "refused", "empty"):
                servers = getattr(moment, kind)
                yield {**fields, "request": moment.request + 1, "kind": kind, "servers": servers}


def _refused(results: Results, labels: Mapping[str, str]) -> Iterator[Row]:
    for fields, outcome in _outcomes(results):
        for label in dict.fromkeys(labels.values()):
            names = [name for name in labels if labels[name] == label]
            refused = sum(outcome.refused.get(name, 0) for name in names)
            total = refused + sum(outcome.taken.get(name, 0) for name in names)
            yield {**fields, "label": label, "part": refused / total if total else 0.0}


def _stranded(results: Results) -> Iterator[Row]:
    for fields, outcome in _outcomes(results):
        for name, free in sorted(outcome.free.items()):
            part = outcome.stranded.get(name, 0) / free if free else 0.0
            yield {**fields, "label": name, "part": part}


def _color(policies: list[str]) -> alt.Color:
    colors = [_COLORS[number % len(_COLORS)] for number in range(len(policies))]
    return (
        alt.Color("policy:N")
        .scale(domain=policies, range=colors)
        .legend(orient="bottom", columns=3, labelLimit=280, symbolOpacity=1, symbolStrokeWidth=3)
    )


def _over_time(policies: list[str]) -> list[PageChart]:
    return [
        PageChart(
            title=title,
            summary=f"For each policy, the number of {what}, by the number of the request.",
            chart=_lines(policies, kind, what),
        )
        for kind, title, what in (
            ("refused", "Refused servers", "servers that found no host so far"),
            ("running", "Running servers", "servers that are on a host"),
            ("empty", "Empty hosts", "hosts of which nothing is allocated"),
        )
    ]


def _lines(policies: list[str], kind: str, what: str) -> alt.TopLevelMixin:
    base = (
        alt.Chart(alt.NamedData(name="course"))
        .transform_filter(f"datum.kind === '{kind}'")
        .encode(x=alt.X("request:Q").title("request"), color=_color(policies))
    )
    seeds = base.mark_line(strokeWidth=0.6, opacity=0.4).encode(
        y=alt.Y("servers:Q").title(what), detail="seed:N"
    )
    means = base.mark_line(strokeWidth=2).encode(
        y=alt.Y("mean(servers):Q").title(what),
        tooltip=["policy:N", "request:Q", "mean(servers):Q"],
    )
    return alt.layer(seeds, means).properties(width="container", height=300)


def _bars(policies: list[str], name: str, title: str, rows: Sequence[Row]) -> PageChart:
    base = alt.Chart(alt.NamedData(name=name)).encode(
        y=alt.Y("label:N").sort(_greatest_first(rows)).title(None).axis(labelLimit=260),
        yOffset=alt.YOffset("policy:N").sort(policies),
    )
    bars = base.mark_bar().encode(
        x=alt.X("mean(part):Q").title("part").axis(format="%"),
        color=_color(policies),
        tooltip=["policy:N", "label:N", alt.Tooltip("mean(part):Q", format=".2%")],
    )
    points = base.mark_tick(color="black", thickness=1).encode(x=alt.X("part:Q").title("part"))
    return PageChart(
        title=title,
        summary=f"{title} as a part of all, under each policy, with a mark for each seed.",
        chart=alt.layer(bars, points).properties(
            width="container", height=alt.Step(9, **{"for": "offset"})
        ),
    )


def _greatest_first(rows: Iterable[Row]) -> list[str]:
    sums = defaultdict[str, float](float)
    for row in rows:
        sums[str(row["label"])] += float(row["part"] or 0)
    return sorted(sums, key=lambda label: (-sums[label], label))


def _spread(policies: list[str]) -> PageChart:
    chart = (
        alt.Chart(alt.NamedData(name="seeds"))
        .mark_circle(size=90, opacity=0.8)
        .encode(
            y=alt.Y("policy:N").sort(policies).title(None).axis(labelLimit=280),
            x=alt.X("servers:Q").title("refused servers").scale(zero=False),
            color=_color(policies).legend(None),
            tooltip=["policy:N", "seed:N", "servers:Q"],
        )
    )
    return PageChart(
        title="Refused servers of each seed",
        summary="For each policy and seed, the number of servers that found no host.",
        chart=chart.properties(width="container", height=alt.Step(26)),
    )
