"""Summaries of providers, as Placement answers."""

from typing import Any

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
