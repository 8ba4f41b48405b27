"""The Python examples of a page of the documentation, and the output that the page states."""

import re
from pathlib import Path
from textwrap import dedent

DOCS = Path(__file__).parents[1] / "docs"

_BLOCK = re.compile(
    r"^\.\. code-block:: python\n((?:   :class: nova\n)?)\n((?:(?:   .*)?\n)+)", re.MULTILINE
)


def examples(page: str, *, with_nova: bool = False) -> list[str]:
    """Return the examples of a page that need Nova, or those that do not, in their order."""
    text = (DOCS / page).read_text()
    return [dedent(code) for option, code in _BLOCK.findall(text) if bool(option) == with_nova]


def stated_output(code: str) -> str:
    """Return the comments of an example: each is a line of output."""
    return "".join(f"{line}\n" for line in re.findall(r"^# (.*)$", code, re.MULTILINE))
