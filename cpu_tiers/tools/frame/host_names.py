"""Names and numbers of hosts and flavors in messages."""

from collections.abc import Sequence, Sized

_MOST_NAMES = 50


def of_all(some: Sized, hosts: Sized) -> str:
    """Return how many of the hosts are meant."""
    return f"{len(some)} of {len(hosts)} hosts"


def names(named: Sequence[str]) -> str:
    """Return the names of hosts or flavors, at most 50."""
    more = f" and {len(named) - _MOST_NAMES} more" if len(named) > _MOST_NAMES else ""
    return ", ".join(named[:_MOST_NAMES]) + more
