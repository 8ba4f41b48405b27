"""Why a host has no candidate: the constraints, and what the host lacks of each. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple


class ClaimLimit(NamedTuple):
    """A limit of an inventory for a single claim, which no free amount cures.

    :param limit: ``max_unit``, ``min_unit`` or ``step_size``.
    :param value: the value of the limit.
    :param asked: the amount that the limit refuses.
    """

    resource_class: str
    limit: str
    value: int
    asked: int

    def to_json(self) -> Mapping[str, object]:
        """Return the limit as the commands print it in JSON."""
        return dict(zip(("class", "limit", "is", "asked"), self, strict=True))


Lack = int | ClaimLimit
"""The amount that would have to be free in addition; 1 for what is no amount."""


def named(name: str, lack: Lack) -> str:
    """Return a constraint by its name, and the limit that refuses a claim."""
    return f"{name} {lack.limit} {lack.value}" if isinstance(lack, ClaimLimit) else name


class HostReason(NamedTuple):
    """Why a host has no candidate.

    :param lacks: the smallest set of constraints without which the host has a candidate, each
        with what the host lacks. A resource class of which the host has enough is not in the set.
    :param instead: if the set has one constraint: the other constraints that alone suffice, too.
    """

    lacks: Mapping[str, Lack]
    instead: tuple[str, ...] = ()


def nearest(reasons: Mapping[str, HostReason]) -> list[tuple[str, HostReason]]:
    """Return the hosts that lack the fewest constraints, the nearest first, with the reason.

    :param reasons: by the name of the host. A host with a reason without constraints is left out.
    """
    lacking = [(name, reason) for name, reason in reasons.items() if reason.lacks]
    fewest = min((len(reason.lacks) for _, reason in lacking), default=0)
    return sorted(
        ((name, reason) for name, reason in lacking if len(reason.lacks) == fewest),
        key=lambda item: (_nearness(item[1].lacks.values()), item[0]),
    )


def _nearness(lacks: Collection[Lack]) -> tuple[int, float, int]:
    """Return a key that sorts missing amounts before limits of a claim, which stay."""
    limits = [lack for lack in lacks if isinstance(lack, ClaimLimit)]
    distance = sum(abs(limit.asked - limit.value) / limit.asked for limit in limits)
    return len(limits), distance, sum(lack for lack in lacks if isinstance(lack, int))


def order_of_lack(lack: Lack) -> tuple[bool, int]:
    """Return a key by which amounts come before limits, and the nearest limits first."""
    if isinstance(lack, ClaimLimit):
        return True, abs(lack.asked - lack.value)
    return False, lack
