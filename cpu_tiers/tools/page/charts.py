"""The charts of the page of a cloud, and the picture of a host as SVG or PNG.

vl-convert draws the picture without a browser. The colors are of ``cividis``, which was made for
people who cannot distinguish red from green, and every color has a number or a name beside it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import altair as alt
import vl_convert

from cpu_tiers.errors import printable
from cpu_tiers.tools.page.cloud_data import FEW, LEAST
from cpu_tiers.tools.page.document import Row
from cpu_tiers.tools.tiers.tier import NO_TIER

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
    color = alt.when(_IS_DARK).then(alt.value("white")).otherwise(alt.value("black"))
    numbers = base.mark_text(fontSize=16 if few else 11, dy=9 if few else 0)
    labels = numbers.encode(text="label:N", color=color).properties(description="")
    if few:
        names = base.mark_text(dy=-10, limit=190).encode(text="host:N", color=color)
    else:  # each row has the name of its first host on the left
        firsts = base.transform_filter("datum.column == 0")
        names = firsts.mark_text(align="right", dx=-18, limit=180).encode(text="host:N")
    layers = alt.layer(cells, labels, names).add_params(selected)
    return layers.properties(height=alt.Step(54 if few else 19))


def _rows(dataset: str, name: str, order: list[str] | None, label_limit: int = 260) -> alt.Chart:
    """Return a chart with a row for each name in a field of a data set."""
    names = alt.Y(f"{name}:N").sort(order).title(None).axis(labelLimit=label_limit)
    return alt.Chart(alt.NamedData(name=dataset)).encode(y=names)


def _layers(*charts: alt.Chart) -> alt.TopLevelMixin:
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
    part = alt.X("part:Q").stack("zero").title("part of the capacity").axis(format="%")
    bars = (_rows("sold", "class", classes).mark_bar(stroke="white")).encode(
        x=part.scale(domain=[0, 1]),
        order="order:Q",
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
    count = alt.X("consumers:Q").title("consumers").axis(tickMinStep=1, tickCount=10)
    base = _rows("consumers", "tier", tiers).encode(x=count)
    bars = base.mark_bar(stroke="black", strokeWidth=0.5)
    numbers = base.mark_text(align="left", dx=4)
    return _layers(
        bars.encode(color=_tier_colors(tiers).legend(None)),
        numbers.encode(text=alt.Text("consumers:Q", format=",")),
    )


def amounts_of_host() -> alt.TopLevelMixin:
    """Return a bar for each resource class of each provider of a host."""
    base = _rows("amounts", "name", None, label_limit=420)
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
    base = _rows("guests", "label", None, label_limit=380)
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
    """Return a mark for each measured guest: the missing part of what was due."""
    return _layers(
        alt.Chart(alt.NamedData(name="floors"))
        .transform_filter("datum.short !== null")
        .mark_tick(thickness=2)
        .encode(
            x=alt.X("short:Q")
            .title("part of the due CPU time that the guest did not get")
            .axis(format="%")
            .scale(domainMin=0),
            y=alt.Y("tier:N").sort(tiers).title(None),
            tooltip=[
                *("host:N", "guest:N", alt.Tooltip("short:Q", format=".1%")),
                alt.Tooltip("floor:Q", format=".3f"),
            ],
        )
    )


_LONGEST: Final = 44


def draw_host(kind: str, host: str, guests: Sequence[Row]) -> bytes:
    """Return the picture; the picture of an unchanged host is an unchanged file.

    :param kind: ``svg`` or ``png``.
    :param guests: for each guest ``name``, ``vcpus``, ``tier``, ``entitlement`` and ``floor`` in
        CPUs; if the host was measured, also ``wanted``, ``due``, ``delivered`` and ``short``,
        which are ``None`` for a guest that was not measured.
    """
    specification = chart(host, guests).to_dict()
    if kind == "svg":
        return vl_convert.vegalite_to_svg(specification).encode()
    return vl_convert.vegalite_to_png(specification, scale=1.5)


def chart(host: str, guests: Sequence[Row]) -> Any:
    """Return the picture as a chart of Vega-Lite."""
    is_measured = any("due" in guest for guest in guests)
    count = Counter(str(guest["tier"]) for guest in guests)
    labels = {tier: f"{tier} ({_count(number, 'guest')})" for tier, number in count.items()}
    rows = [_row(number, guest, labels[str(guest["tier"])]) for number, guest in enumerate(guests)]
    about = ["CPU of each guest while all vCPUs want to run"]
    about += ["bar: entitlement; upright mark: floor"]
    if is_measured:
        about = ["CPU that each guest wanted, that was due to it, and that it got"]
        about += ["bar: due; upright mark: floor; dotted frame: wanted; black line: delivered"]
    title = alt.Title(_short(host), subtitle=about, anchor="start", fontSize=15)
    if not guests:
        empty = alt.Chart(alt.InlineData(values=[{}])).mark_text(text="no guests on this host")
        return empty.properties(title=title, width=560, height=60)
    names = alt.Axis(
        labelExpr="data('guests')[datum.value].label", labelLimit=400, ticks=False, domain=False
    )
    base = alt.Chart().encode(
        y=alt.Y("row:O").title(None).axis(names).scale(paddingInner=0.25, paddingOuter=0.2)
    )
    layers = [_bars(base, list(labels.values()))]
    if is_measured:
        layers += [
            base.mark_bar(fill=None, stroke="#555555", strokeDash=[2, 2]).encode(x="wanted:Q"),
            base.mark_bar(color="black", stroke="white", height=6).encode(x="delivered:Q"),
            base.mark_text(align="left", dx=8).encode(x="end:Q", text="remark:N"),
        ]
    floors = base.mark_tick(color="white", stroke="black", thickness=3, height=17, opacity=1)
    data = alt.InlineData(values=rows, name="guests")
    return (
        alt.layer(*layers, floors.encode(x="floor:Q"), data=data)
        .properties(title=title, width=560, height=alt.Step(24))
        .configure_view(stroke=None)
    )


def _bars(base: Any, tiers: Sequence[str]) -> Any:
    """Return the bars; a higher tier has a lighter color, and no tier has none."""
    colors = shades(sum(not tier.startswith(NO_TIER) for tier in tiers))
    colors += ["white"] * (len(tiers) - len(colors))
    legend = alt.Legend(title=None, orient="bottom", columns=3, labelLimit=300)
    legend.symbolStrokeColor, legend.symbolStrokeWidth = "black", 0.6
    color = alt.Color("tier:N").scale(domain=tiers, range=colors).legend(legend)
    bars = base.mark_bar(stroke="black", strokeWidth=0.6)
    return bars.encode(x=alt.X("bar:Q").title("host CPUs"), color=color)


def _row(number: int, guest: Row, tier: str) -> dict[str, Any]:
    """Return the data of a guest: nothing was due to a guest that slept, whatever its tier."""
    measured = {key: guest.get(key) or 0.0 for key in ("due", "wanted", "delivered")}
    remark = ""
    if "due" in guest and guest["due"] is None:
        remark = "not measured"
    elif guest.get("short"):
        remark = f"got {measured['delivered']:.2f} of {measured['due']:.2f} due"
    return {
        "row": number,
        "label": f"{_short(str(guest['name']))} ({_count(guest['vcpus'], 'vCPU')})",
        "tier": tier,
        "bar": measured["due"] if "due" in guest else guest["entitlement"],
        "floor": guest["floor"],
        "end": max(float(guest["floor"] or 0), float(measured["wanted"])),
        "remark": remark,
        **measured,
    }


def _short(name: str) -> str:
    """Return a name that leaves room for the bars: only the begin and the end of a long name."""
    name, half = printable(name), _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[-half + 1 :]}"


def _count(number: object, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
