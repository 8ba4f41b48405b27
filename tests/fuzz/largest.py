"""The inputs of a reader with the largest numbers: in one field after the other, and in all.

No reader may take memory, or time, in proportion to a number of a few bytes.
"""

import re
from collections.abc import Iterator

# Of Placement, of the CPUs of Linux, of a weight, of a float in a database, and of a counter of
# the kernel. A reader refuses the numbers that a field cannot have.
AMOUNT, FLOAT = b"2147483647", b"3.4028234e38"
LARGEST = (AMOUNT, b"65536", b"65535", b"0-65535", b"10000", FLOAT, b"18446744073709551615")
_NUMBER = re.compile(rb"(?<![\w.-])[0-9]+(\.[0-9]+)?(?![\w.-])")


def with_largest_numbers(content: bytes, number: bytes) -> Iterator[bytes]:
    """Yield the input with ``number`` in place of all numbers, and then of each number."""
    yield _NUMBER.sub(number, content)
    for match in _NUMBER.finditer(content):
        yield content[: match.start()] + number + content[match.end() :]
