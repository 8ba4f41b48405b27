"""Names and numbers of hosts in the messages of ``cpu-tiers-status upgrade check``."""

from collections.abc import Sequence, Sized

_MOST_NAMES = 50


def of_all(some: Sized, hosts: Sized) -> str:
    """Return how many of the hosts are meant."""
    return f"{len(some)} of {len(hosts)} hosts"


def names(hosts: Sequence[str]) -> str:
    """Return the names of hosts, at most 50."""
    more = f" and {len(hosts) - _MOST_NAMES} more" if len(hosts) > _MOST_NAMES else ""
    return ", ".join(hosts[:_MOST_NAMES]) + more
