"""Nova's own services in this process, over a real Placement.

Nova and its libraries warn of much that is deprecated, when they are imported
and when they run. A warning that our own code causes is still an error.
"""

import gc
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

    # Loads our validators, which wait for nova.conf with a seam.
    import nova.api.validation.extra_specs.validators  # isort: skip

from cpu_tiers.nova import seams
from cpu_tiers.nova.scheduler.resource_request import scheduler_translators
from tests import draws, made_once
from tests.in_processes import run_taken
from tests.nova.wrapping import all_seams

HERE = Path(__file__).parent
SEAMS = all_seams()
SLOW = (
    "test_affinity_moves",
    "test_audit_remedies",
    "test_candidate_order",
    "test_cloud",
    "test_custom_weighers",
    "test_devices",
    "test_domain",
    "test_driver",
    "test_fault_law",
    "test_heal_",
    "test_hostile_answers",
    "test_interrupted_tier_change",
    "test_joined_answers",
    "test_life_",
    "test_loading",
    "test_mediated_devices",
    "test_mixed",  # and test_mixed_cpus
    "test_movable",
    "test_moves",
    "test_next_candidate",
    "test_nova_weighers",
    "test_novas_reshapes",
    "test_numa_pinning",
    "test_numa_plan",
    "test_numa_reshape",
    "test_oversold_claims",
    "test_places",
    "test_plan",
    "test_port_plan",
    "test_qos_ports",
    "test_reshape",
    "test_resource_request",
    "test_shares_quota",
    "test_tier_change",
    "test_tiers",
    "test_weigher",
)
"""The beginnings of the names of modules that take a minute or more: a day runs a third."""

seams.remove(SEAMS)


@pytest.fixture(scope="session", autouse=True)
def kept_from_test_to_test() -> None:
    """Have all tests share what does not differ between them."""
    made_once.share_all()
    made_once.make_validators_once(nova.api.validation.validators)


@pytest.fixture(autouse=True)
def nova_as_it_was() -> Iterator[None]:
    """Take our seams out again: in one test all services share this process."""
    yield
    seams.remove(SEAMS)
    scheduler_translators.cache_clear()


def pytest_collection_finish() -> None:
    """Have the garbage collector leave alone what Nova's modules hold.

    Otherwise each full collection walks through all of it.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Share the tests with other processes, if ``tests/in_processes.py`` started them."""
    return run_taken(session)


def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    """Let warnings pass that are not caused by our modules; skip the tests of another day.

    One of the classes with the same tests runs each day, and a third of the other tests of a
    slow module.
    """
    ours = [
        item for item in items if isinstance(item, pytest.Function) and HERE in item.path.parents
    ]
    similar: dict[type, list[type]] = {}
    for own in dict.fromkeys(item.cls for item in ours if item.cls):
        similar.setdefault(_first(own), []).append(own)
    today = {each for classes in similar.values() for each in draws.in_turn(classes)}
    alone = {None, *(classes[0] for classes in similar.values() if len(classes) == 1)}
    left = [item for item in ours if not item.cls or item.cls in today]
    slow = [item for item in left if item.path.name.startswith(SLOW) and item.cls in alone]
    runs = {*left}.difference(slow).union(draws.third(slow))
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings(r"ignore:::(?!cpu_tiers|tests\.)"))
        if item not in runs:
            item.add_marker(pytest.mark.skip("similar tests take turns"))


def _first(own: type) -> type:
    """Return the first class that has some of the tests of a class: the class or a base."""
    bases = [each for each in own.__mro__ if each.__module__.startswith("tests.")]
    return [each for each in bases if any(name.startswith("test") for name in vars(each))][-1]
