"""Draw docs/demo.svg, the picture of the README: ``tox -e picture``.

The picture has the lines of the demo about the requests of the tiers and about the first host.
"""

import io
import re
from pathlib import Path
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.text import Text

from cpu_tiers.tools.demo import DemoCloud, DemoReport
from cpu_tiers.tools.placement.embedded import embedded_placement

PICTURE = Path(__file__).parents[1] / "docs" / "demo.svg"
COLUMNS = 80
CELL = 12.2
"""The width of a character in the picture, which rich has fixed."""

COMMAND = "$ cpu-tiers demo"
SVG = "{http://www.w3.org/2000/svg}"


def chosen(lines: list[str], plain: list[str]) -> list[str]:
    """Return the lines of the demo that the picture has.

    :param lines: the output of the demo.
    :param plain: the same lines without colors, by which the choice is made.
    """
    starts = [
        plain.index(next(line for line in plain if line.startswith(text)))
        for text in ("2. ", "3. ")
    ]
    first = plain.index("plain")
    last = plain.index("gpu")
    return ["", *lines[starts[0] : starts[1]], *lines[first : last - 1]]


def colored() -> list[str]:
    """Return the lines of the demo, with the codes for colors of a terminal."""
    output = io.StringIO()
    console = Console(
        file=output, force_terminal=True, color_system="256", width=COLUMNS, highlight=False
    )
    report = DemoReport(console)
    with embedded_placement() as client:
        cloud = DemoCloud(client)
        servers = list(cloud.fill())
        report.flavors(cloud)
        report.placements(cloud, servers)
        report.guests(cloud, servers)
    return output.getvalue().splitlines()


def drawn() -> str:
    """Return the picture, without fonts from the network."""
    lines = [Text.from_ansi(line) for line in colored()]
    plain = [line.plain.rstrip() for line in lines]
    console = Console(file=io.StringIO(), record=True, width=COLUMNS, highlight=False)
    console.print(COMMAND)
    by_number = {str(number): line for number, line in enumerate(lines)}
    for number in chosen(list(by_number), plain):
        console.print(by_number.get(number, Text()))
    picture = console.export_svg(title="cpu-tiers", unique_id="demo")
    return re.sub(r"\n *@font-face \{.*?\n *\}", "", picture, flags=re.DOTALL)


def text_of(picture: str) -> list[str]:
    """Return the lines of text in a picture, from the top."""
    lines: dict[float, str] = {}
    for text in ET.fromstring(picture).iter(f"{SVG}text"):  # noqa: S314  # the picture is ours
        if "clip-path" in text.attrib:
            x, y = float(text.attrib["x"]), float(text.attrib["y"])
            before = lines.get(y, "").ljust(round(x / CELL))
            lines[y] = before + (text.text or "").replace("\xa0", " ")
    return [line.rstrip() for line in lines.values()]


if __name__ == "__main__":
    PICTURE.write_text(drawn())
