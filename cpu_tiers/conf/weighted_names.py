"""Options that are lists of names with weights, such as ``VCPU,MEMORY_MB=2``."""

import re
from collections.abc import Iterable

from oslo_config import types

from cpu_tiers.extra_specs.soft_traits import NUMBERS, parse_weight
from cpu_tiers.model.names import as_known


class WeightedNames(types.ConfigType):
    """The type of such an option; its value is a dictionary from name to weight.

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
