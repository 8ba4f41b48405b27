"""Drawing a host: a bar for each guest with its fair share, its floor and the delivered CPU.

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

from cpu_tiers.cli.output_file import write_output
from cpu_tiers.cli.tier_arguments import tier_names
from cpu_tiers.errors import CpuTiersError, InvalidInput, printable
from cpu_tiers.guest.audit import Delivery
from cpu_tiers.guest.occupancy import Occupancy
from cpu_tiers.guest.tier import Tier, multiplier_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_UNTIERED = "no tier"
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
    :param delivered: CPUs that the guest had; ``None`` if they were not measured.
    """

    name: str
    vcpus: int
    tier: str
    multiplier: float
    fair: float
    floor: float
    delivered: float | None = None


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

    :param deliveries: the delivered CPU of measured guests, by the guest's name.
    """
    entitlements, names = host.entitlements(), tier_names(host.domains, tiers)
    guests = []
    for domain in host.domains:
        multiplier, delivery = multiplier_of(domain), (deliveries or {}).get(domain.name)
        unnamed = _UNTIERED if multiplier is None else f"multiplier {float(multiplier):g}"
        guests.append(
            Bar(
                name=domain.name,
                vcpus=len(domain.vcpu_sets),
                tier=names[domain.name] or unnamed,
                multiplier=float(multiplier or 0),
                fair=float(entitlements[domain.name].fair),
                floor=float(entitlements[domain.name].floor),
                delivered=delivery.delivered if delivery else None,
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
                try:
                    write_output(path, content.getvalue())
                except OSError as error:
                    reason = f"cannot be written ({error.strerror})"
                    raise InvalidInput.of(path, reason, "name a writable file") from error


def _figure(host: str, guests: Sequence[Bar]) -> "Figure":
    from matplotlib.figure import Figure

    height = 2.1 + _ROW_INCHES * max(len(guests), 3)
    figure = Figure(figsize=(8, height), layout="constrained")
    axes: Any = figure.add_subplot()
    styles = _styles(guests)
    for tier, style in styles.items():
        rows = [row for row, bar in enumerate(guests) if bar.tier == tier]
        widths = [guests[row].fair for row in rows]
        label = f"{tier}, fair share ({_count(len(rows), 'guest')})"
        axes.barh(
            rows, widths, height=0.72, edgecolor="black", linewidth=0.6, label=label, **style
        )
    _draw_floors(axes, guests)
    _draw_delivered(axes, guests)
    _describe(figure, axes, host, guests)
    return figure


def _styles(guests: Sequence[Bar]) -> Mapping[str, Mapping[str, object]]:
    """Return the style of each tier's bars; a higher tier has a lighter color."""
    from matplotlib import colormaps

    tiers = list(dict.fromkeys(bar.tier for bar in guests if bar.tier != _UNTIERED))
    steps = [0.95 - 0.65 * i / max(1, len(tiers) - 1) for i in range(len(tiers))]
    styles: dict[str, Mapping[str, object]] = {
        tier: {"color": colormaps["cividis"](step)}
        for tier, step in zip(tiers, steps, strict=True)
    }
    if any(bar.tier == _UNTIERED for bar in guests):
        styles[_UNTIERED] = {"facecolor": "white", "hatch": "////"}
    return styles


def _draw_floors(axes: Any, guests: Sequence[Bar]) -> None:
    """Draw the floor as an upright line over the bar, white with a black edge."""
    for color, width in (("black", 3.2), ("white", 1.4)):
        axes.vlines(
            [bar.floor for bar in guests],
            [row - 0.36 for row in range(len(guests))],
            [row + 0.36 for row in range(len(guests))],
            color=color,
            linewidth=width,
            label="floor" if color == "black" else None,
        )


def _draw_delivered(axes: Any, guests: Sequence[Bar]) -> None:
    """Draw the delivered CPU as a black line with a white edge, visible on any color."""
    measured = [(row, bar) for row, bar in enumerate(guests) if bar.delivered is not None]
    if not measured:
        return
    rows, widths = [row for row, _ in measured], [bar.delivered for _, bar in measured]
    axes.barh(
        rows,
        widths,
        height=0.24,
        color="black",
        edgecolor="white",
        linewidth=0.8,
        label="delivered",
    )


def _describe(figure: "Figure", axes: Any, host: str, guests: Sequence[Bar]) -> None:
    measured = any(bar.delivered is not None for bar in guests)
    what = f"CPU of each guest while all vCPUs want to run{', and delivered' if measured else ''}"
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
