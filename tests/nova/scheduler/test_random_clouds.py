"""nova-scheduler on random clouds, compared with a brute force.

``docs/contributor/numa-queries.rst`` describes the clouds.
"""

from __future__ import annotations

from collections import Counter

import pytest
from nova import objects

from tests.draws import clouds, repeatable
from tests.nova.scheduler.random_checks import check_cloud, placement


@pytest.fixture(autouse=True, scope="module")
def nova_objects() -> None:
    objects.register_all()


def test_no_placement_is_missed_and_none_is_infeasible() -> None:
    counts: Counter[str] = Counter()
    with placement() as empty:
        for number in clouds(100):
            with repeatable(number) as seed:
                counts += check_cloud(empty, seed)
    print(dict(sorted(counts.items())))  # noqa: T201  # for the runs of many clouds, with -s
    # Or there was nothing to compare. A repeated cloud may have nothing.
    assert counts["kept 0"] or counts["clouds"] < 10
