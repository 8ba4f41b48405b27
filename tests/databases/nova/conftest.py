"""Nova's own services in this process, in threads, over a Placement with a database of Debian."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

os.environ["OS_NOVA_DISABLE_EVENTLET_PATCHING"] = "true"

from tests.nova.conftest import nova_as_it_was

__all__ = ["nova_as_it_was"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Allow warnings of Nova and its libraries."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(r"ignore:::(?!cpu_tiers|tests\.)"))
