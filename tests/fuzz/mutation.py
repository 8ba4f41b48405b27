"""Changes an input in its own format: JSON by its values, other texts by words and lines.

libFuzzer changes bytes, and most documents with another byte are no JSON and no XML any more. A
document with another value stays well-formed, so that the checks behind the parser are reached.
"""

import copy
import json
import random
import re
from collections.abc import Iterator
from typing import Any

_WORD = re.compile(rb"[\w.+^-]+")
_XML_WORD = re.compile(rb"(?<=['\">])[\w.+^, -]+(?=['\"<])")
"""The value of an attribute, or the text of an element."""

_WORDS = (
    b"", b"0", b"-1", b"1", b"1.5", b"1e999", b"65535", b"65536", b"2147483647",
    b"2147483648", b"nan", b"inf",
    b"9" * 400, b"0-65535", b"1-0", b"^", b",", b":", b"=", b" ", b"\n", b"\x0b", b"\0", b"\xff",
    b"\xff\xff", "²".encode(), "\u2028".encode(), b"\\040", b")", b"(", b"<a/>", b"&amp;",
    b"true", b"x" * 300,
)  # fmt: skip
_INFINITE = "1e999"
_VALUES: tuple[object, ...] = (
    None, True, False, 0, -1, 1, 1.5, 65536, 2**31 - 1, 2**31, 2**64, 10**400, _INFINITE, "", " ",
    "0", "x",
    "x" * 300, "\ud800", "\0", "\n", "²", "!A", "in:A,B", "CUSTOM_A", "VCPU", [], {}, [[]], [{}],
    {"": 0}, {"a": None},
)  # fmt: skip


def mutate(content: bytes, most_bytes: int, seed: int) -> bytes:
    """Return the input with one to three changes. Equal arguments give an equal result.

    :param most_bytes: the result is cut to this length.
    """
    draw = random.Random(seed)
    # An answer of Placement begins with a line that has the status.
    status, line, body = re.fullmatch(rb"(?s)([0-9]{3})?(\n)?(.*)", content).groups(b"")  # type: ignore[union-attr]  # matches every text
    try:
        document = [json.loads(body)]
    except (ValueError, RecursionError):
        changed = _text(content, draw)
    else:
        for _ in range(draw.randint(1, 3)):
            _change(document, draw)
        text = json.dumps(document[0] if document else None)
        changed = status + line + text.replace(f'"{_INFINITE}"', _INFINITE).encode()
    return changed[:most_bytes]


def _change(document: list[Any], draw: random.Random) -> None:
    """Change a value of a JSON document in place."""
    places = list(_places(document))
    if not places:
        return
    (container, key), (other, other_key) = draw.choice(places), draw.choice(places)
    match draw.randrange(6):
        case 0 | 1:
            container[key] = copy.deepcopy(draw.choice(_VALUES))
        case 2:
            del container[key]
        case 3:
            container[key] = copy.deepcopy(other[other_key])
        case 4 if isinstance(container, dict):
            container[str(draw.choice((other_key, *_VALUES)))] = container.pop(key)
        case _:
            container[key] = [container[key], copy.deepcopy(other[other_key])]


def _places(container: Any) -> Iterator[tuple[Any, Any]]:
    keys = container if isinstance(container, dict) else range(len(container))
    for key in list(keys):
        yield container, key
        if isinstance(container[key], (dict, list)):
            yield from _places(container[key])


def _text(content: bytes, draw: random.Random) -> bytes:
    """Return a text with other words, or with lines removed, repeated or exchanged."""
    word_of = _XML_WORD if content.startswith(b"<") else _WORD
    for _ in range(draw.randint(1, 3)):
        words, lines = list(word_of.finditer(content)), content.split(b"\n")
        at, other = draw.randrange(len(lines)), draw.randrange(len(lines))
        match draw.randrange(6):
            case 0 | 1 | 2 if words:
                word = draw.choice(words)
                new = draw.choice((*_WORDS, draw.choice(words)[0]))
                content = content[: word.start()] + new + content[word.end() :]
            case 3:
                content = b"\n".join(lines[:at] + lines[at + 1 :])
            case 4:
                content = b"\n".join((*lines[:at], lines[other], *lines[at:]))
            case _:
                lines[at], lines[other] = lines[other], lines[at]
                content = b"\n".join(lines)
    return content
