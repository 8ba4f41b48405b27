"""Pages as HTML: whole, without addresses, and with names that are never markup."""

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import altair
import pytest

from cpu_tiers.tools.page.document import Page, PageChart, PageLink, PageSection, PageTable
from tests.functional.page.reading import data_of

HOSTILE = "</script></title></table><script>alert(1)</script><img src=x onerror=alert(1)>{{ 7*7 }}"


class PageReader(HTMLParser):
    """Keeps the elements of a page with their attributes and texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.texts.setdefault(tag, []).append("")
        self._open = tag

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts[self._open][-1] += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)


def page_of(name: str, *, value: float = 0.5) -> Page:
    """Return a page that has a name in every place where a page can have a name."""
    chart = altair.Chart(altair.NamedData(name="hosts")).mark_bar().encode(x="left:Q", y="host:N")
    table = PageTable(
        title=name,
        columns=("host", name),
        rows=[(name, 3), (PageLink(text=name, to="hosts"), 0.25), (None, "")],
    )
    section = PageSection(
        key="hosts",
        title=name,
        texts=[name],
        parts=[table, PageChart(title=name, summary=name, chart=chart)],
    )
    return Page(
        title=name,
        texts=[name],
        sections=[section],
        datasets={"hosts": [{"host": name, "left": value}]},
    )


def test_a_page_has_texts_and_tables() -> None:
    reader = PageReader(page_of("compute-1").html())
    assert reader.texts["title"] == reader.texts["h1"] == ["compute-1"]
    assert reader.texts["th"] == ["host", "compute-1"]
    assert [text.strip() for text in reader.texts["td"]] == ["compute-1", "3", "", "0.25", "", ""]
    assert reader.texts["a"] == ["compute-1"]
    assert ("a", {"href": "#hosts"}) in reader.elements


def test_a_name_is_never_markup() -> None:
    html = page_of(HOSTILE).html()
    honest, hostile = PageReader(page_of("compute-1").html()), PageReader(html)
    assert hostile.elements == honest.elements
    assert hostile.texts["h1"] == [HOSTILE]
    data = data_of(html)
    assert data["datasets"]["hosts"] == {"fields": ["host", "left"], "rows": [[HOSTILE, 0.5]]}
    assert data["charts"][0]["description"] == HOSTILE


def test_a_control_character_is_shown_as_an_escape() -> None:
    # U+202E turns the direction of the text after it around.
    html = page_of("a\u202eb\x1b[0m").html()
    reader = PageReader(html)
    assert reader.texts["h1"] == ["a\\u202eb\\x1b[0m"]
    assert data_of(html)["datasets"]["hosts"]["rows"] == [["a\\u202eb\\x1b[0m", 0.5]]


def test_the_policy_names_the_scripts_of_the_page() -> None:
    reader = PageReader(page_of("compute-1").html())
    (policy,) = (
        attributes["content"] or ""
        for tag, attributes in reader.elements
        if attributes.get("http-equiv") == "Content-Security-Policy"
    )
    _, *scripts = reader.texts["script"]
    hashes = [b64encode(sha256(script.encode()).digest()).decode() for script in scripts]
    assert len(hashes) == 2
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline';"
        f" script-src 'sha256-{hashes[0]}' 'sha256-{hashes[1]}'"
    )


def test_a_page_loads_nothing() -> None:
    reader = PageReader(page_of("compute-1").html())
    assert reader.count("script") == 3
    assert not {"link", "img", "iframe", "base"} & {tag for tag, _ in reader.elements}
    addresses = [
        value
        for _, attributes in reader.elements
        for name, value in attributes.items()
        if name in ("src", "href")
    ]
    assert addresses == ["#hosts"]
    assert "url(" not in "".join(reader.texts["style"])


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        page_of("compute-1", value=float("nan")).html()


def test_an_empty_page_is_a_page() -> None:
    html = Page(title="nothing").html()
    reader = PageReader(html)
    assert reader.texts["h1"] == ["nothing"]
    assert data_of(html) == {
        "charts": [],
        "datasets": {},
        "choices": {},
    }
