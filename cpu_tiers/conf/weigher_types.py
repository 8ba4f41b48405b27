"""The types of the options of the weigher."""

import math
import re
from collections.abc import Iterable, Sequence

from oslo_config import types

from cpu_tiers import extensions
from cpu_tiers.extra_specs.soft_traits import NUMBERS, parse_weight
from cpu_tiers.model.names import as_known


class Multiplier(types.Float):
    """A finite number: with ``nan`` or ``inf``, the weights of hosts could not be compared."""

    def __call__(self, value: str | float) -> float | None:
        """Return the number; ``None`` for an empty text.

        :raises ValueError: the value is no number, or not finite.
        """
        number = super().__call__(value)
        if number is not None and not math.isfinite(number):
            raise ValueError(f"{value} is no finite number; write a number such as 2.5")
        return number


class WeightedNames(types.ConfigType):
    """A list such as ``VCPU,MEMORY_MB=2``; the value is a dictionary from name to weight.

    :param are_prefixes: whether a name may be ``PREFIX*``.
    """

    def __init__(self, *, are_prefixes: bool = False) -> None:
        super().__init__(type_name="list of NAME or NAME=WEIGHT")
        self._pattern = r"\w+\*?" if are_prefixes else r"\w+"

    def __call__(self, value: str | Iterable[str]) -> dict[str, float]:
        """Return the weights by name.

        :raises ValueError: an entry is malformed, or names what an earlier entry names.
        """
        entries = value.split(",") if isinstance(value, str) else list(value)
        weights: dict[str, float] = {}
        for entry in map(str.strip, entries if any(entries) else ()):
            name, equals, text = entry.partition("=")
            weight = parse_weight(text) if equals else 1.0
            if not re.fullmatch(self._pattern, name, re.ASCII):
                raise ValueError(f"entry {entry!r} has no name; write NAME or NAME=WEIGHT")
            if weight is None:
                raise ValueError(f"entry {entry!r} has no weight that is {NUMBERS}")
            if as_known(name) in map(as_known, weights):
                raise ValueError(f"entry {entry!r} names {name} a second time; leave one out")
            weights[name] = weight
        return weights

    def _formatter(self, value: Iterable[str]) -> str:
        """Return the text of the default value in the sample nova.conf."""
        return ",".join(value)


_POINT = "PERCENT=PART, a number from 0 to 100 and a number from 0 to 1"


class ShapeType(types.ConfigType):
    """The points of a function, such as ``0=1,100=0``: percentages and parts from 0 to 1."""

    def __init__(self) -> None:
        super().__init__(type_name="list of PERCENT=PART")

    def __call__(self, value: str) -> tuple[tuple[float, float], ...]:
        """Return the points in the order of their percentages.

        :raises ValueError: an entry is malformed, or has the percentage of an earlier entry.
        """
        points: dict[float, float] = {}
        for entry in map(str.strip, value.split(",")):
            percent, part = map(parse_weight, entry.partition("=")[::2])
            if percent is None or part is None or percent > 100 or part > 1:
                raise ValueError(f"entry {entry!r} is no point; write {_POINT}")
            if percent in points:
                raise ValueError(
                    f"entry {entry!r} is a second point at {percent:g}; leave one out"
                )
            points[percent] = part
        return tuple(sorted(points.items()))

    def _formatter(self, value: str) -> str:
        """Return the text of the default value in the sample nova.conf."""
        return value


class ScoringName(types.String):
    """The name of a scoring of cpu-tiers, or else of another distribution.

    :param choices: the names of the scorings of cpu-tiers, with their descriptions.
    """

    def __init__(self, choices: Sequence[tuple[str, str]]) -> None:
        super().__init__(choices=choices)

    def __call__(self, value: str) -> str:
        """Return the name.

        :raises ValueError: there is no such scoring.
        :raises ExtensionError: a scoring of another distribution does not load.
        """
        try:
            return str(super().__call__(value))
        except ValueError:
            # The plugins are loaded for the name of a plugin only.
            if value not in extensions.load(extensions.SCORINGS):
                raise
        return value
