"""A page: sections with paragraphs, tables and charts, as one HTML file that needs no network.

Vega-Altair makes the charts. The JavaScript of Vega, Vega-Lite and Vega-Embed, which vl-convert
brings along, is a part of the file, and draws the charts as SVG with texts. The content security
policy of the page lets a browser run only this JavaScript, and send no request.

Names from a cloud are data and never markup: Jinja escapes all texts, and the data of the charts
are compressed JSON in base64. A chart must use a name only as a value of its data, and never as a
part of a field, an expression or an address.
"""

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from cpu_tiers.errors import printable

if TYPE_CHECKING:
    import altair

Row = Mapping[str, str | int | float | bool | None]
"""A row of the data of charts: the values by field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLink:
    """A text with a link to a place within the page.

    :param to: the ``id`` of a section, or the key of a choice.
    """

    text: str
    to: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageBar:
    """A bar in a table, with a text beside it.

    :param part: the filled part of the bar, from 0 to 1; more is drawn as 1.
    """

    text: str
    part: float


Cell = str | int | float | PageLink | PageBar | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PageTable:
    """A table; the numbers are aligned on the right. A long table is closed until a click.

    :param rows: the cells of each row, as many as there are columns.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageChart:
    """A chart.

    :param summary: what the chart shows, in a sentence or two: for a person who cannot see it.
    :param chart: its data are given by value, or by the name of a data set of the page.
    """

    title: str
    summary: str
    chart: "altair.TopLevelMixin"

    def specification(self) -> dict[str, Any]:
        """Return the chart in Vega-Lite."""
        specification: dict[str, Any] = self.chart.to_dict()
        return {**specification, "description": printable(self.summary)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DataTable:
    """A table of a data set of the page.

    :param columns: the title of each column, by the field of the data set.
    :param empty: the text instead of a table without rows.
    """

    title: str
    columns: Mapping[str, str]
    dataset: str
    empty: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSection:
    """A section.

    :param key: the ``id`` of the section, for links. Letters, digits and ``-``.
    :param texts: the paragraphs before the parts.
    :param is_about_choice: the section is about the choice: it is shown while there is a choice,
        and its charts and tables have only the rows of the choice. Other sections are shown while
        there is no choice.
    """

    key: str
    title: str
    texts: Sequence[str] = ()
    parts: Sequence[PageTable | DataTable | PageChart] = ()
    is_about_choice: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page.

    :param texts: the paragraphs below the title.
    :param datasets: the data that several charts share, by name. All rows of a data set have the
        same fields. The field ``choice`` has the key of the choice that a row belongs to.
    :param choices: the name of each choice by its key. A link to the key makes the choice.
    :param back: the text of the link that ends a choice.
    """

    title: str
    texts: Sequence[str] = ()
    sections: Sequence[PageSection] = ()
    datasets: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    back: str = ""

    def html(self) -> str:
        """Return the HTML file."""
        charts = [
            part.specification()
            for section in self.sections
            for part in section.parts
            if isinstance(part, PageChart)
        ]
        environment = Environment(
            loader=PackageLoader("cpu_tiers.tools.page", "."),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_shown,
        )
        style = files(__package__).joinpath("page.css").read_text()
        scripts = _scripts() if self._is_drawn() else []
        datasets = {name: _packed(rows) for name, rows in self.datasets.items()}
        return environment.get_template("page.html").render(
            page=self,
            style=Markup(style),  # noqa: S704  # it is ours
            scripts=scripts,
            policy=_policy(scripts),
            data=_compressed({"charts": charts, "datasets": datasets, "choices": self.choices}),
        )

    def _is_drawn(self) -> bool:
        """Tell whether the page has parts that JavaScript draws."""
        parts = [part for section in self.sections for part in section.parts]
        return bool(self.choices) or not all(isinstance(part, PageTable) for part in parts)


def _scripts() -> list[Markup]:
    """Return the JavaScript that draws: vegaEmbed, of the newest Vega that vl-convert has."""
    import vl_convert  # a page without charts does not need it

    vega = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # wrong in their stub
    return [_script(vega), _script(files(__package__).joinpath("page.js").read_text())]


def _packed(rows: Sequence[Row]) -> Mapping[str, object]:
    """Return rows with the names of their fields only once."""
    fields = list(rows[0]) if rows else []
    return {"fields": fields, "rows": [[row[name] for name in fields] for row in rows]}


def _script(text: str) -> Markup:
    """Return JavaScript that does not end before its end, where a text has ``</script>``."""
    text = re.sub("</(?=script)", r"<\\/", text.replace("\r", ""), flags=re.IGNORECASE)
    return Markup(text.replace("<!--", r"<\!--"))  # noqa: S704  # no names of a cloud


def _policy(scripts: Iterable[Markup]) -> str:
    """Return a content security policy: only these scripts run, and nothing is loaded."""
    hashes = (b64encode(sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{value}'" for value in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"


def _compressed(value: object) -> str:
    """Return JSON that is compressed by gzip, in base64.

    The data of 10,000 hosts are 15 MB of JSON, and 2 MB in this form.
    """
    text = json.dumps(_printable(value), separators=(",", ":"), allow_nan=False)
    return b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _printable(value: object) -> object:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, Mapping):
        return {_printable(key): _printable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_printable(item) for item in value]
    return value


def _shown(value: object) -> object:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, int):
        return f"{value:,}"
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
