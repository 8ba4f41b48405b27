"""Chromium of the machine, without a network."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from playwright.sync_api import Page as BrowserPage

EXPECTED = ('WARN Dropping "fit-y" because spec has discrete height.',)
"""Vega-Lite notes that a chart whose width is that of the page has a height of its own."""

Open = Callable[[str], BrowserPage]
"""Opens HTML in the browser, and waits until all charts are drawn."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Return the browser; bindep.txt names its package, profile page."""
    path = shutil.which("chromium")
    assert path is not None, "install the Debian package chromium"
    with sync_playwright() as playwright:
        # Its sandbox does not work as root, which CI is.
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_html(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Return a function that opens HTML, and fail if the page complains or sends a request."""
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    complaints: list[str] = []
    requests: list[str] = []

    file = tmp_path / "page.html"

    def open_html(html: str) -> BrowserPage:
        file.write_text(html)
        page = context.new_page()
        page.set_default_timeout(120_000)  # milliseconds; a busy machine is slow
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-charts=drawn]")
        return page

    yield open_html
    context.close()
    assert [text for text in complaints if text not in EXPECTED] == []
    assert set(requests) == {file.as_uri()}
