"""``[DEFAULT] reserved_huge_pages``: the pages of a NUMA node that no server may have.

The syntax is Nova's, and the option may be given several times:
``node:0,size:2048,count:64`` (kB) and ``node:1,size:1GB,count:1``.
"""

import re
from collections.abc import Iterable, Mapping

from cpu_tiers.errors import FaultList, InvalidInput

_WHERE = "nova.conf, [DEFAULT] reserved_huge_pages"
_ALLOWED = "write node:0,size:2048,count:64, with a size in kB or with a unit, such as 2MB or 1GB"
_KB = {"k": 1, "m": 2**10, "g": 2**20}


def read_reserved_pages(values: Iterable[Mapping[str, str]]) -> dict[int, dict[int, int]]:
    """Return the numbers of reserved pages, by NUMA node and page size in kB.

    :raises InvalidInput: with every value that is malformed, or that repeats the
        node and the size of another value.
    """
    reserved: dict[int, dict[int, int]] = {}
    faults = FaultList()
    for value in values:
        with faults:
            node, size, count = _read(value)
            if size in reserved.setdefault(node, {}):
                given = f"pages of {size} kB of node {node} twice"
                raise InvalidInput.of(_WHERE, given, "write a single value with the sum")
            reserved[node][size] = count
    faults.raise_if_any()
    return reserved


def _read(value: Mapping[str, str]) -> tuple[int, int, int]:
    size = re.fullmatch(r"([1-9][0-9]{0,11})(?:([KMG])(?:i?B)?)?", value.get("size", ""), re.I)
    node, count = value.get("node", ""), value.get("count", "")
    # At most 9 digits, and plain ones: int() also takes blanks, signs and underscores.
    numbers = all(re.fullmatch(r"[0-9]{1,9}", text, re.ASCII) for text in (node, count))
    if value.keys() != {"node", "size", "count"} or size is None or not numbers:
        given = ",".join(f"{key}:{text}" for key, text in value.items())
        raise InvalidInput.of(_WHERE, f"got {given!r}", _ALLOWED)
    return int(node), int(size[1]) * _KB[(size[2] or "k").lower()], int(count)
