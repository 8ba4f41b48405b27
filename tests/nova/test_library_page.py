"""The example with Nova's objects in docs/reference/library.rst, and the names that need Nova."""

import pytest

from tests.api_signatures import FILE, entries
from tests.documented_code import DOCS, examples, stated_output

pytestmark = pytest.mark.skipif(
    not (DOCS / "reference/library.rst").exists(), reason="installed without the repository"
)


def test_the_example_prints_the_output_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = examples("reference/library.rst", with_nova=True)
    exec(code, {})  # noqa: S102  # the code is in this repository
    assert capsys.readouterr().out == stated_output(code) != ""


def test_the_signatures_are_as_documented() -> None:
    assert "".join(f"{entry}\n" for entry in entries()) == FILE.read_text()
