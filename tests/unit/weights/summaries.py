"""Summaries of providers, as Placement answers."""

from collections.abc import Iterable
from typing import Any

from cpu_tiers.weights.cost.amounts import HostTotals
from cpu_tiers.weights.scale import Scale

Summary = Any  # as json.loads returns it


def provider(root: str, **resources: tuple[int, int]) -> Summary:
    """Return a summary without traits; ``resources`` is class to (capacity, used)."""
    return {
        "resources": {
            name: {"capacity": capacity, "used": used}
            for name, (capacity, used) in resources.items()
        },
        "traits": [],
        "root_provider_uuid": root,
    }


def scale_of(summaries: Iterable[Summary], hosts: int) -> Scale:
    """Return the scale of a number of hosts with these providers."""
    totals = HostTotals()
    totals.add(summaries, hosts)
    return totals.scale()
