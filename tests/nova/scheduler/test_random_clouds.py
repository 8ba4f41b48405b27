"""nova-scheduler and the library's queries on random clouds, compared with a brute force.

``docs/numa-queries.rst`` describes the clouds.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest
from nova import objects

from tests.draws import clouds, repeatable
from tests.nova.scheduler.random_checks import check_cloud, placement


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


@pytest.mark.skipif(
    "CPU_TIERS_CLOUDS" not in os.environ,
    reason="leaves databases and options that other tests of the process do not expect",
)
def test_no_placement_is_missed_and_none_is_infeasible() -> None:
    counts: Counter[str] = Counter()
    with placement() as empty:
        for number in clouds(60):
            with repeatable(number) as seed:
                counts += check_cloud(empty, seed)
    print(dict(sorted(counts.items())))  # noqa: T201  # for the runs of many clouds, with -s
    assert counts["placements"] > counts["clouds"]  # or there was nothing to compare
