"""The examples of docs/reference/library.rst run, and print what the page states."""

import pytest

from tests.documented_code import DOCS, examples, stated_output

pytestmark = pytest.mark.skipif(
    not (DOCS / "reference/library.rst").exists(), reason="installed without the repository"
)


def test_the_examples_print_the_output_on_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {}
    codes = examples("reference/library.rst")
    # Translators have two examples; inventories and pinning have one.
    assert len(codes) == 4
    for code in codes:
        exec(code, names)  # noqa: S102  # the code is in this repository
        assert capsys.readouterr().out == stated_output(code) != ""
