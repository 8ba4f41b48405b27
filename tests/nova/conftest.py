"""Nova's own services in this process, over a real Placement.

Nova and its libraries warn of much that is deprecated, when they are imported
and when they run. A warning that our own code causes is still an error.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import nova.tests.functional  # first of all: it may patch what others import
    import nova.tests.functional.libvirt.base  # noqa: F401  # loads most of what warns

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let warnings pass that are not caused by our modules."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(r"ignore:::(?!cpu_tiers|tests\.)"))
