"""The progress of reading many providers of Placement."""

from collections.abc import Callable

ReadProgress = Callable[[int, int], None]
"""Is called with the number of providers that are read, and of all providers."""


def untold(done: int, total: int) -> None:
    """Tell nobody."""
