"""Whether a value of an aggregate is what an extra spec asks for, such as ``>= 4`` or ``<or> a``.

Nova 31 to 34: ``nova/scheduler/filters/extra_specs_ops.py`` match. Without an operator, both texts
are equal. Pure.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": operator.contains,
}
_NUMBERS: Mapping[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
}


def matches(value: str, requirement: str) -> bool:
    """Tell whether a value is what a requirement asks for."""
    first, *words = requirement.split() or [""]
    if first == "<or>":
        return value in words[::2]
    if first == "<all-in>":
        return bool(words) and all(word in value for word in words)
    if first in _TEXTS:
        return bool(words) and _TEXTS[first](value, words[0])
    if first not in _NUMBERS:
        return value == requirement
    try:
        return bool(words) and _NUMBERS[first](float(value), float(words[0]))
    except ValueError:  # Nova raises the error, and the request fails
        return False
