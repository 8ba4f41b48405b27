"""The data of a page, as the browser reads them."""

import gzip
import json
import re
from base64 import b64decode
from typing import Any


def data_of(html: str) -> Any:
    """Return the data of the charts of a page."""
    match = re.search(r'<script type="application/gzip" id="data">([\w+/=]+)</script>', html)
    assert match is not None
    return json.loads(gzip.decompress(b64decode(match[1])))


def rows_of(html: str, dataset: str) -> list[dict[str, Any]]:
    """Return the rows of a data set of a page."""
    packed = data_of(html)["datasets"][dataset]
    return [dict(zip(packed["fields"], row, strict=True)) for row in packed["rows"]]
