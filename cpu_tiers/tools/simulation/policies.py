"""Policies: the weighers of nova-scheduler with their multipliers. Pure.

The scorings are the code of :mod:`cpu_tiers.weights`, which nova-scheduler runs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.weights import SCORINGS, Scoring

NOVA = "nova"
"""The name of the policy that has only Nova's weighers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a scheduler chooses among the hosts that have room.

    :param name: the text that the user has given.
    :param scoring: ``None`` for no scoring.
    :param multiplier: ``resource_provider_weight_multiplier``.
    :param weighers: the multipliers of Nova's weighers.
    :param resources: the resource classes that count, or a mapping with their weights.
    :param traits: the traits that count.
    """

    name: str
    scoring: Scoring | None = None
    multiplier: float = 1.0
    weighers: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHERS))
    resources: Collection[str] = ()
    traits: Collection[str] = ()

    @classmethod
    def parse(
        cls,
        text: str,
        configured: Mapping[str, float],
        scorings: Mapping[str, Scoring] = SCORINGS,
    ) -> Policy:
        """Return the policy of a text, such as ``boring=2.0,cpu=0``.

        :param configured: the multipliers of Nova's weighers; the text overrides them.
        :raises InvalidInput: with every fault of the text.
        """
        where = f"--policy {text}"
        faults = FaultList()
        first, *others = text.split(",")
        name, _, multiplier = first.partition("=")
        if name != NOVA and name not in scorings:
            faults.add(where, f"got {name!r}", f"begin with {', '.join([NOVA, *scorings])}")
        weighers = dict(configured)
        for part in others:
            weigher, _, number = part.partition("=")
            if weigher in WEIGHERS:
                weighers[weigher] = faults.read(_number, where, number) or 0.0
            else:
                faults.add(where, f"got {weigher!r}", f"name {', '.join(WEIGHERS)}")
        if name == NOVA and multiplier:
            faults.add(where, f"{NOVA}={multiplier}", f"give the multipliers as {NOVA},ram=2.0")
        factor = faults.read(_number, where, multiplier) if multiplier else 1.0
        faults.raise_if_any()
        return cls(
            name=text,
            scoring=scorings.get(name),
            multiplier=factor if factor is not None else 1.0,
            weighers=weighers,
        )


def _number(where: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InvalidInput.of(where, f"got {text!r}", "give a number, such as 2.0 or -1")
    return number
