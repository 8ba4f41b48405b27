"""Nova's own services in this process, over a real Placement.

Nova and its libraries warn of much that is deprecated, when they are imported
and when they run. A warning that our own code causes is still an error.
"""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import nova.monkey_patch  # first of all: it patches what others import

    # The tests of release 32 forget to, so half of the libraries would miss eventlet's locks
    # and thread-locals, and a live migration fails. Release 31 has done it by now.
    if hasattr(nova.monkey_patch, "patch"):
        nova.monkey_patch.patch()
    # Loads most of what warns.
    import nova.tests.functional.libvirt.base

from cpu_tiers.nova import answer, cpus, guest, names, request, seams, tracking
from cpu_tiers.nova.numa import candidates, claims, doubled, fit, query

HERE = Path(__file__).parent
SEAMS = (
    *cpus.SEAMS,
    cpus.MATRIX,
    request.CLAIMS,
    names.SEAM,
    *answer.SEAMS,
    *query.SEAMS,
    *candidates.SEAMS,
    tracking.SEAM,
    guest.LIVE_MIGRATION,
    fit.CONSUMES,
    *claims.SEAMS,
    *doubled.SEAMS,
)


def take_out(seam: seams.Seam) -> None:
    """Have Nova's own function again."""
    owner, name, found = seams._find(seam)
    own = inspect.unwrap(found)
    setattr(owner, name, type(found)(own) if isinstance(found, staticmethod) else own)


# Nova's API has just been imported, and our validators with it, which install seams.
for seam in (*cpus.SEAMS, cpus.MATRIX):
    take_out(seam)


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
