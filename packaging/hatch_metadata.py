"""README.md as the page of an index, where a relative link leads nowhere."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:)([^)]*)\)")
_TARGET = re.compile(r"^\[([^\]]*)\]: (?!https?:)(\S+)\n", re.MULTILINE)
"""A label and its target, in a line of its own."""


def index_page(text: str, source: str | None) -> str:
    """Return the text with links to a public repository.

    :param source: its address, as GitHub has it; without one, each link and picture becomes its
        own text.
    """
    if source:
        folders = {"!": f"{source}/raw/HEAD", "": f"{source}/blob/HEAD"}
        text = _LINK.sub(lambda m: f"{m[1]}[{m[2]}]({folders[m[1]]}/{m[3]})", text)
        return _TARGET.sub(lambda m: f"[{m[1]}]: {folders['']}/{m[2]}\n", text)
    text = _LINK.sub(lambda m: m[2], text)
    labels = [match[1] for match in _TARGET.finditer(text)]
    text = _TARGET.sub("", text)
    for label in labels:
        text = text.replace(f"[{label}]", label)
    return text


class IndexPage(MetadataHookInterface):
    """Make the description, with the address of ``Source`` in ``[project.urls]``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata."""
        source = metadata.get("urls", {}).get("Source")
        text = Path(self.root, "README.md").read_text()
        page = index_page(text, source)
        metadata["readme"] = {"content-type": "text/markdown", "text": page}
