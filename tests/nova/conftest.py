"""Nova's own services in this process, over a real Placement.

Nova and its libraries warn of much that is deprecated, when they are imported
and when they run. A warning that our own code causes is still an error.
"""

import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import nova.tests.functional  # first of all: it may patch what others import
    import nova.tests.functional.libvirt.base  # noqa: F401  # loads most of what warns

from cpu_tiers.nova import answer, guest, request, seams, tracking

HERE = Path(__file__).parent
SEAMS = (
    request.SHARES,
    request.RESOURCE_CLASS,
    *answer.SEAMS,
    tracking.SEAM,
    guest.LIVE_MIGRATION,
)


@pytest.fixture(autouse=True)
def nova_as_it_was() -> Iterator[None]:
    """Take our seams out again: in one test all services share this process."""
    found = [seams._find(seam) for seam in SEAMS]
    yield
    for owner, name, function in found:
        setattr(owner, name, function)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let warnings pass that are not caused by our modules."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(r"ignore:::(?!cpu_tiers|tests\.)"))
