"""Watcher in this process. Watcher and its libraries warn of much that is deprecated."""

import warnings
from collections.abc import Sequence

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import watcher.tests.unit.db.base
    import watcher.tests.unit.objects.utils  # noqa: F401


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let warnings pass that are not caused by our modules."""
    for item in items:
        item.add_marker(pytest.mark.filterwarnings(r"ignore:::(?!cpu_tiers|tests\.)"))
