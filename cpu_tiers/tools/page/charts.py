"""The charts of the page of a cloud.

The colors are of ``cividis``, which was made for people who cannot distinguish red from green, and
every color has a number or a name beside it.
"""

from typing import Final

import altair as alt

from cpu_tiers.tools.page.cloud_data import FEW, LEAST

_COLORS: Final = "cividis"
_PALE = "#e6e6e6"
_IS_DARK = "datum.left !== null && datum.left < 0.55 && !datum.disabled"
"""Tells whether the color of a cell is so dark that its text is white."""


def heat_map(classes: list[str], hosts: int) -> alt.TopLevelMixin:
    """Return the hosts as cells, with what is left of a resource class that the reader selects.

    A click on a cell leads to the host.
    """
    few = hosts <= FEW
    selected = alt.param(
        name="selected",
        value=LEAST,
        bind=alt.binding_select(options=[LEAST, *classes], name="Resource class: "),
    )
    base = (
        alt.Chart(alt.NamedData(name="cells"), width=alt.Step(200 if few else 27))
        .transform_filter("datum.class == selected")
        .encode(
            x=alt.X("column:O").axis(None),
            y=alt.Y("row:O").axis(None),
            href="key:N",
            tooltip=alt.Tooltip("about:N"),
        )
    )
    cells = base.mark_rect(stroke="white", cursor="pointer").encode(
        color=alt.when("datum.left === null || datum.disabled")
        .then(alt.value(_PALE))
        .otherwise(
            alt.Color("left:Q")
            .scale(scheme=_COLORS, domain=[0, 1], clamp=True)
            .legend(title="left", format="%")
        ),
        stroke=alt.when("datum.over").then(alt.value("black")).otherwise(alt.value("white")),
        strokeWidth=alt.when("datum.over").then(alt.value(2.5)).otherwise(alt.value(1)),
        description="about:N",
    )
    light = alt.when(_IS_DARK).then(alt.value("white"))
    numbers = base.mark_text(fontSize=16 if few else 11, dy=9 if few else 0).encode(
        text="label:N", color=light.otherwise(alt.value("black"))
    )
    layers = [cells, numbers.properties(description="")]
    if few:
        names = base.mark_text(dy=-10, limit=190).encode(
            text="host:N", color=light.otherwise(alt.value("black"))
        )
        layers.append(names)
    else:
        # Each row has the name of its first host on the left.
        names = base.transform_filter("datum.column == 0").mark_text(
            align="right", dx=-18, limit=180
        )
        layers.append(names.encode(text="host:N", x=alt.X("column:O").axis(None)))
    return alt.layer(*layers).add_params(selected).properties(height=alt.Step(54 if few else 19))


def _layers(*charts: alt.Chart) -> alt.TopLevelMixin:
    """Return charts one over the other, as wide as their place on the page."""
    return alt.layer(*charts).properties(width="container")


def _tier_colors(tiers: list[str]) -> alt.Color:
    return (
        alt.Color("tier:N")
        .scale(domain=tiers, range=shades(len(tiers)))
        .legend(title="tier", symbolStrokeColor="black", symbolStrokeWidth=0.5)
    )


def shades(count: int) -> list[str]:
    """Return distinct shades of cividis, the first the lightest."""
    # Anchors of cividis from light to dark (matplotlib), between which is interpolated.
    anchors = [(253, 231, 55), (187, 173, 108), (124, 123, 120), (66, 78, 108), (0, 34, 78)]
    shades = []
    for number in range(count):
        at = number * (len(anchors) - 1) / max(1, count - 1)
        low = min(int(at), len(anchors) - 2)
        mixed = (
            round(a + (b - a) * (at - low))
            for a, b in zip(anchors[low], anchors[low + 1], strict=True)
        )
        shades.append("#{:02x}{:02x}{:02x}".format(*mixed))
    return shades


def sold_by_tier(classes: list[str], tiers: list[str]) -> alt.TopLevelMixin:
    """Return a bar for each resource class, with the part that each tier has."""
    base = alt.Chart(alt.NamedData(name="sold")).encode(
        y=alt.Y("class:N").sort(classes).title(None).axis(labelLimit=260),
        x=alt.X("part:Q")
        .stack("zero")
        .title("part of the capacity")
        .axis(format="%")
        .scale(domain=[0, 1]),
        order="order:Q",
    )
    bars = base.mark_bar(stroke="white").encode(
        color=_tier_colors(tiers),
        tooltip=[
            alt.Tooltip("class:N"),
            alt.Tooltip("tier:N"),
            alt.Tooltip("amount:Q", format=","),
            alt.Tooltip("part:Q", format=".1%"),
        ],
    )
    return _layers(bars)


def consumers_by_tier(tiers: list[str]) -> alt.TopLevelMixin:
    """Return a bar for each tier, with the number of its consumers."""
    base = alt.Chart(alt.NamedData(name="consumers")).encode(
        y=alt.Y("tier:N").sort(tiers).title(None).axis(labelLimit=260),
        x=alt.X("consumers:Q").title("consumers").axis(tickMinStep=1, tickCount=10),
    )
    bars = base.mark_bar(stroke="black", strokeWidth=0.5).encode(
        color=_tier_colors(tiers).legend(None)
    )
    return _layers(
        bars, base.mark_text(align="left", dx=4).encode(text=alt.Text("consumers:Q", format=","))
    )


def amounts_of_host() -> alt.TopLevelMixin:
    """Return a bar for each resource class of each provider of a host."""
    base = alt.Chart(alt.NamedData(name="amounts")).encode(
        y=alt.Y("name:N").sort(None).title(None).axis(labelLimit=420)
    )
    whole = base.mark_bar(color=_PALE).encode(x=alt.X(datum=1))
    bars = base.mark_bar(color="#575d6d").encode(
        x=alt.X("part:Q").title("used part of the capacity").axis(format="%")
    )
    text = base.mark_text(align="left", dx=6, fontWeight="bold").encode(
        x=alt.X("end:Q"), text="label:N"
    )
    return _layers(whole, bars, text.transform_calculate(end="max(1, datum.part)"))


def guests_of_host(tiers: list[str]) -> alt.TopLevelMixin:
    """Return a bar for each consumer of a host: its VCPU and PCPU, and its floor."""
    base = alt.Chart(alt.NamedData(name="guests")).encode(
        y=alt.Y("label:N").sort(None).title(None).axis(labelLimit=380)
    )
    bars = base.mark_bar(stroke="black", strokeWidth=0.5).encode(
        x=alt.X("cpus:Q").title("VCPU and PCPU; a mark is the floor in CPUs").axis(tickMinStep=1),
        color=_tier_colors(tiers).legend(None),
    )
    marks = base.transform_calculate(at="datum.floor === null ? 0 : datum.floor").mark_tick(
        color="black", stroke="white", thickness=4, height=18
    )
    shown = alt.when("datum.floor === null").then(alt.value(0)).otherwise(alt.value(1))
    return _layers(bars, marks.encode(x="at:Q", opacity=shown))


def findings_by_kind() -> alt.TopLevelMixin:
    """Return a bar for each kind of finding."""
    base = alt.Chart(alt.NamedData(name="findings")).encode(
        y=alt.Y("kind:N").title(None), x=alt.X("count():Q").title("findings").axis(tickMinStep=1)
    )
    return _layers(
        base.mark_bar(color="#575d6d"),
        base.mark_text(align="left", dx=4).encode(text="count():Q"),
    )


def short_by_tier(tiers: list[str]) -> alt.TopLevelMixin:
    """Return a mark for each measured guest: the part of its owed floor that it did not get."""
    return _layers(
        alt.Chart(alt.NamedData(name="floors"))
        .transform_filter("datum.short !== null")
        .mark_tick(thickness=2)
        .encode(
            x=alt.X("short:Q")
            .title("part of the owed floor that the guest did not get")
            .axis(format="%")
            .scale(domainMin=0),
            y=alt.Y("tier:N").sort(tiers).title(None),
            tooltip=[
                alt.Tooltip("host:N"),
                alt.Tooltip("guest:N"),
                alt.Tooltip("short:Q", format=".1%"),
                alt.Tooltip("floor:Q", format=".3f"),
            ],
        )
    )
