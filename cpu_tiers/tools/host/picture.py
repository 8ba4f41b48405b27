"""Drawing a host: a bar for each guest, and its floor.

Without a measurement the bar is the fair share of the guest. With a measurement the bar is the CPU
time that the guest was owed: its floor while it wanted to run.

matplotlib draws the picture. The colors are shades of its color map ``cividis``, which
was made for people who cannot distinguish red from green. The shades of two tiers
differ in lightness, so the picture can also be printed in black and white.
"""

import io
import logging
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cpu_tiers.errors import CpuTiersError, printable
from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.guest.tier import NO_TIER, Tier, multiplier_of, unnamed_tier
from cpu_tiers.tools.frame.safe_files import write_output
from cpu_tiers.tools.frame.tier_arguments import tier_names
from cpu_tiers.tools.host.checks import Delivery

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = ("svg", "png")
_LONGEST = 44
_ROW_INCHES = 0.22


class MatplotlibMissing(CpuTiersError):
    """matplotlib is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """The bar of a guest.

    :param multiplier: shares for each vCPU, by which the tiers are sorted; 0 without a tier.
    :param fair: the fair share of the guest, in CPUs.
    :param floor: the floor of the guest, in CPUs.
    :param delivery: what the guest wanted, was owed and got; ``None`` if it was not measured.
    """

    name: str
    vcpus: int
    tier: str
    multiplier: float
    fair: float
    floor: float
    delivery: Delivery | None = None


def add_picture_arguments(parser: ArgumentParser) -> None:
    """Add an argument for each format of a picture."""
    for kind in _FORMATS:
        parser.add_argument(
            f"--{kind}", metavar="FILE", help=f"draw the host to this file, as {kind.upper()}"
        )


def wants_picture(parsed_args: Namespace) -> bool:
    """Tell whether the arguments name a file for a picture."""
    return any(getattr(parsed_args, kind) for kind in _FORMATS)


def bars(
    host: Occupancy, tiers: Collection[Tier], deliveries: Mapping[str, Delivery] | None = None
) -> list[Bar]:
    """Return the bars of the guests, sorted from the highest to the lowest tier.

    :param deliveries: the CPU time of measured guests, by the guest's name.
    """
    entitlements, names = host.entitlements(), tier_names(host.domains, tiers)
    guests = []
    for domain in host.domains:
        multiplier = multiplier_of(domain)
        guests.append(
            Bar(
                name=domain.name,
                vcpus=len(domain.vcpu_sets),
                tier=names[domain.name] or unnamed_tier(multiplier),
                multiplier=float(multiplier or 0),
                fair=float(entitlements[domain.name].fair),
                floor=float(entitlements[domain.name].floor),
                delivery=(deliveries or {}).get(domain.name),
            )
        )
    return sorted(guests, key=lambda bar: (-bar.multiplier, bar.tier, bar.name))


def draw(parsed_args: Namespace, host: str, guests: Sequence[Bar]) -> None:
    """Write the picture to each file in the arguments.

    :raises MatplotlibMissing: matplotlib is not installed.
    :raises InvalidInput: a file cannot be written.
    """
    if not wants_picture(parsed_args):
        return
    try:
        import matplotlib
    except ImportError as error:
        raise MatplotlibMissing(
            "a picture needs matplotlib: pip install 'cpu-tiers[picture]'"
        ) from error
    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # Its INFO lines are about fonts.
    with (
        matplotlib.rc_context({"svg.hashsalt": "cpu-tiers", "hatch.linewidth": 0.6}),
        warnings.catch_warnings(),
    ):
        # matplotlib draws a box instead of a character that the font lacks.
        warnings.filterwarnings("ignore", "Glyph .* missing")
        figure = _figure(host, guests)
        for kind in _FORMATS:
            if path := getattr(parsed_args, kind):
                # Without a date, the picture of an unchanged host is an unchanged file.
                date = {"Date": None} if kind == "svg" else {}
                content = io.BytesIO()
                figure.savefig(content, format=kind, dpi=150, metadata=date)
                write_output(path, content.getvalue())


def _figure(host: str, guests: Sequence[Bar]) -> "Figure":
    from matplotlib.figure import Figure

    height = 2.1 + _ROW_INCHES * max(len(guests), 3)
    figure = Figure(figsize=(8, height), layout="constrained")
    axes: Any = figure.add_subplot()
    measured = any(bar.delivery for bar in guests)
    if measured:
        _draw_wanted(axes, guests)
    for tier, style in _styles(guests).items():
        rows = [row for row, bar in enumerate(guests) if bar.tier == tier]
        widths = [_width(guests[row], measured=measured) for row in rows]
        label = f"{tier}, {'owed' if measured else 'fair share'} ({_count(len(rows), 'guest')})"
        axes.barh(
            rows, widths, height=0.72, edgecolor="black", linewidth=0.6, label=label, **style
        )
    _draw_floors(axes, guests)
    if measured:
        _draw_delivered(axes, guests)
    _describe(figure, axes, host, guests)
    return figure


def _width(bar: Bar, *, measured: bool) -> float:
    """Return the length of a bar: a guest that slept was owed nothing, whatever its tier."""
    if not measured:
        return bar.fair
    return bar.delivery.owed if bar.delivery else 0.0


def _styles(guests: Sequence[Bar]) -> Mapping[str, Mapping[str, object]]:
    """Return the style of each tier's bars; a higher tier has a lighter color."""
    from matplotlib import colormaps

    tiers = list(dict.fromkeys(bar.tier for bar in guests if bar.tier != NO_TIER))
    steps = [0.95 - 0.65 * i / max(1, len(tiers) - 1) for i in range(len(tiers))]
    styles: dict[str, Mapping[str, object]] = {
        tier: {"color": colormaps["cividis"](step)}
        for tier, step in zip(tiers, steps, strict=True)
    }
    if any(bar.tier == NO_TIER for bar in guests):
        styles[NO_TIER] = {"facecolor": "white", "hatch": "////"}
    return styles


def _draw_floors(axes: Any, guests: Sequence[Bar]) -> None:
    """Draw the floor as an upright line over the bar, white with a black edge."""
    floors, rows = [bar.floor for bar in guests], range(len(guests))
    for color, width in (("black", 3.2), ("white", 1.4)):
        label = "floor" if color == "black" else "_white"  # the legend leaves out "_…"
        style = {"color": color, "markersize": 12, "markeredgewidth": width, "label": label}
        axes.plot(floors, rows, "|", **style)


def _draw_wanted(axes: Any, guests: Sequence[Bar]) -> None:
    """Draw the CPU time that guests wanted, as a dotted frame around the bar."""
    rows, widths = _measured(guests, "wanted")
    axes.barh(
        rows, widths, height=0.72, fill=False, linestyle=":", edgecolor="0.35", label="wanted"
    )


def _draw_delivered(axes: Any, guests: Sequence[Bar]) -> None:
    """Draw the delivered CPU as a black line with a white edge, visible on any color."""
    rows, widths = _measured(guests, "delivered")
    black = {"color": "black", "edgecolor": "white", "linewidth": 0.8}
    axes.barh(rows, widths, height=0.24, label="delivered", **black)
    for row, bar in enumerate(guests):
        if text := _remark(bar):
            end = max(bar.floor, bar.delivery.wanted if bar.delivery else 0.0)
            aside = {"xytext": (6, 0), "textcoords": "offset points", "va": "center"}
            axes.annotate(text, (end, row), fontsize=8, **aside)


def _remark(bar: Bar) -> str:
    """Return the text beside a bar: what a guest lacked, or that it was not measured."""
    if bar.delivery is None:
        return "not measured"
    got, owed = bar.delivery.delivered, bar.delivery.owed
    return f"got {got:.2f} of {owed:.2f} owed" if bar.delivery.short else ""


def _measured(guests: Sequence[Bar], name: str) -> tuple[list[int], list[float]]:
    """Return the rows of the measured guests, and an attribute of their deliveries."""
    measured = [(row, bar.delivery) for row, bar in enumerate(guests) if bar.delivery]
    return [row for row, _ in measured], [getattr(delivery, name) for _, delivery in measured]


def _describe(figure: "Figure", axes: Any, host: str, guests: Sequence[Bar]) -> None:
    what = "CPU of each guest while all vCPUs want to run"
    if any(bar.delivery for bar in guests):
        what = "CPU that each guest wanted, was owed and got"
    title = f"{_short(host)}\n{what}"
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, weight="bold", parse_math=False)
    axes.set_xlabel("host CPUs")
    labels = [f"{_short(bar.name)} ({_count(bar.vcpus, 'vCPU')})" for bar in guests]
    axes.set_yticks(range(len(guests)), labels=labels, fontsize=8, parse_math=False)
    axes.set_ylim(max(len(guests), 3) - 0.4, -0.6)  # reversed: the first guest is on top
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color="0.85")
    axes.set_axisbelow(True)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.set_xlim(left=0)
    if guests:
        figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=8)
    else:
        axes.text(0.5, 0.5, "no guests on this host", transform=axes.transAxes, ha="center")


def _short(name: str) -> str:
    """Return a name that leaves room for the bars: only the begin and the end of a long name."""
    name, half = printable(name), _LONGEST // 2
    return name if len(name) <= _LONGEST else f"{name[:half]}…{name[-half + 1 :]}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
