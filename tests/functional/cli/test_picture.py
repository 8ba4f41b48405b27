"""``host show --svg`` and ``--png``."""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from cpu_tiers.tools.host.checks import Delivery
from cpu_tiers.tools.host.picture import Bar, MatplotlibMissing, _figure, draw

Command = Callable[..., Any]

DOMAIN = (
    "<domain><name>{name}</name><vcpu cpuset='0-3'>1</vcpu>"
    "<cputune><shares>{shares}</shares></cputune></domain>"
)


@pytest.fixture
def show(run: Command, save: Command, capabilities: str) -> Command:
    """Run ``host show`` on a host of 64 CPUs with these guests."""

    def show(guests: Mapping[str, int], *options: object, status: int = 0) -> Any:
        texts = [DOMAIN.format(name=name, shares=shares) for name, shares in guests.items()]
        files = [save(text, f"{i}.xml") for i, text in enumerate(texts)]
        domains = ("--domain", *files) if files else ()
        return run(
            *("--config-file", save("", "nova.conf"), "host", "show"),
            *("--capabilities", capabilities, *domains, *options),
            status=status,
        )

    return show


@pytest.mark.parametrize(
    "guests",
    [
        pytest.param({}, id="none"),
        pytest.param({"gold": 100}, id="one"),
        pytest.param({f"instance-{i:08x}": 25 * (1 + i % 4) for i in range(60)}, id="60"),
        pytest.param({"long-" * 40: 100, "$x^{2$": 50, "名前": 7}, id="names"),
    ],
)
def test_pictures(show: Command, tmp_path: Path, guests: Mapping[str, int]) -> None:
    svg, png = tmp_path / "host.svg", tmp_path / "host.png"
    result = show(guests, "--svg", svg, "--png", png, "--hostname", "compute-$1")
    assert etree.fromstring(svg.read_bytes()).tag == "{http://www.w3.org/2000/svg}svg"
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "Glyph" not in result.stderr
    again = tmp_path / "again.svg"
    show(guests, "--svg", again, "--hostname", "compute-$1")
    assert again.read_bytes() == svg.read_bytes()  # one host, one file


def test_a_picture_that_cannot_be_written(show: Command) -> None:
    result = show({"gold": 100}, "--svg", "/nowhere/host.svg", status=1)
    assert "/nowhere/host.svg: cannot be written (there is no folder /nowhere)" in result.stderr


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    wanted = Namespace(svg=str(tmp_path / "host.svg"), png=None)
    with pytest.raises(MatplotlibMissing, match=r"pip install 'cpu-tiers\[picture\]'"):
        draw(wanted, "compute1", [])
    draw(Namespace(svg=None, png=None), "compute1", [])  # nobody asks for one


GOLD = Bar(name="a", vcpus=2, tier="gold", multiplier=100, fair=1.5, floor=1.0)
BRONZE = Bar(name="b", vcpus=1, tier="bronze", multiplier=25, fair=0.5, floor=0.25)


def test_what_is_drawn() -> None:
    figure = _figure("compute1", [GOLD, BRONZE])
    (axes,) = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a (2 vCPUs)", "b (1 vCPU)"]
    assert [widths(bars) for bars in axes.containers] == [[1.5], [0.5]]
    assert legend(figure) == [
        "floor",
        "gold, fair share (1 guest)",
        "bronze, fair share (1 guest)",
    ]
    light, dark = (sum(bars[0].get_facecolor()[:3]) for bars in axes.containers)
    assert light > dark + 0.5  # told apart in grey


def test_an_idle_guest_is_owed_nothing_and_a_short_guest_is_named() -> None:
    idle = Delivery(seconds=10.0, delivered=0.02, wanted=0.02, owed=0.01)
    short = Delivery(seconds=10.0, delivered=0.125, wanted=1.0, owed=0.25)
    guests = [replace(GOLD, delivery=idle), replace(BRONZE, delivery=short), BRONZE]
    figure = _figure("compute1", guests)
    (axes,) = figure.axes
    # wanted, owed to Gold, owed to Bronze, delivered; the last guest was not measured
    assert [widths(bars) for bars in axes.containers] == [
        [0.02, 1.0],
        [0.01],
        [0.25, 0.0],
        [0.02, 0.125],
    ]
    assert [text.get_text() for text in axes.texts] == ["got 0.12 of 0.25 owed", "not measured"]
    assert legend(figure) == [
        "floor",
        "wanted",
        "gold, owed (1 guest)",
        "bronze, owed (2 guests)",
        "delivered",
    ]


def widths(bars: Any) -> list[float]:
    return [bar.get_width() for bar in bars]


def legend(figure: Any) -> list[str]:
    (legend,) = figure.legends
    return [text.get_text() for text in legend.get_texts()]
