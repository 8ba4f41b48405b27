"""Soft traits of a flavor: ``trait:NAME=preferred|avoided[:WEIGHT]``.

The weigher prefers or avoids hosts with the trait. The trait is not requested of Placement: Nova
ignores the values, with a warning in its log. Pure.
"""

import re
from collections.abc import Mapping

from cpu_tiers.errors import FaultList
from cpu_tiers.model.names import is_trait

PREFERRED, AVOIDED = "preferred", "avoided"

MAX_WEIGHT = 1000
"""The largest weight of a name in nova.conf or in a flavor."""

NUMBERS = f"a number from 0 to {MAX_WEIGHT} without an exponent, such as 2.5"


def parse_weight(text: str) -> float | None:
    """Return a weight; ``None`` for a text that is not a plain number from 0 to 1000."""
    # Not float() alone, which also reads nan, inf, exponents, signs, spaces and "_".
    is_number = re.fullmatch(r"[0-9]{1,4}(\.[0-9]{1,9})?", text, re.ASCII)
    return float(text) if is_number and float(text) <= MAX_WEIGHT else None


def is_soft(value: str) -> bool:
    """Tell whether the value of an extra spec is meant as a preference."""
    return value.partition(":")[0] in (PREFERRED, AVOIDED)


def soft_traits(extra_specs: Mapping[str, str]) -> dict[str, float]:
    """Return the weights of the soft traits of a flavor by trait; below 0 for avoided traits.

    Malformed extra specs are left out: below microversion 2.86, nova-api accepts any value.
    """
    return {
        name: weight
        for key, value in extra_specs.items()
        if key.startswith("trait:")
        and (weight := _weight(value)) is not None
        and is_trait(name := key.removeprefix("trait:"))
    }


def check_soft_trait(where: str, suffix: str, value: str, faults: FaultList) -> None:
    """Add a fault if a soft trait is malformed, or in a group with a suffix."""
    if suffix:
        advice = "leave out the suffix: the weigher looks at all providers of a host"
        faults.add(where, f"got {value!r} in the group {suffix!r}", advice)
    elif _weight(value) is None:
        kind = value.partition(":")[0]
        faults.add(where, f"got {value!r}", f"give {kind}, or {kind}:WEIGHT with {NUMBERS}")


def _weight(value: str) -> float | None:
    kind, colon, text = value.partition(":")
    weight = parse_weight(text) if colon else 1.0
    if weight is None or kind not in (PREFERRED, AVOIDED):
        return None
    return weight if kind == PREFERRED else -weight
