"""100 servers want another tier at the same time, and their host has room for half of them.

A run has 20 servers, and with ``CPU_TIERS_DAYS=1`` 100 on each database.

Nova's services run in this process, in threads, and Placement in several processes over MariaDB
or PostgreSQL.
"""

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests import draws
from tests.databases.load import Monitor
from tests.databases.nova import crowd
from tests.databases.servers import placement
from tests.databases.stored import Database
from tests.nova.computes import SHARES

SERVERS = 100 if draws.DAYS == 1 else 20
SMALL, LARGE = 10, 30
"""A host of n CPUs has 20 n shares: n / 2 x 30 + n / 2 x 10 = 20 n."""


@pytest.mark.parametrize(
    ("retries", "has_guard"),
    [
        pytest.param(1, False, id="a Placement that does not oversell"),
        pytest.param(10, True, id="the default Placement, and the guard"),
    ],
)
def test_as_many_changes_succeed_as_fit(
    database: Database, tmp_path: Path, retries: int, *, has_guard: bool
) -> None:
    monitor = Monitor(database)
    cloud = crowd.Crowd(SERVERS)
    with (
        placement(tmp_path, database.url, allocation_conflict_retry_count=retries) as url,
        restored(database),
        cloud.running(url),
    ):
        cloud.configure(give_back_oversold_claims=has_guard)
        servers = cloud.boot_all(cloud.sized("small", SMALL))
        assert cloud.tree.used()["one"][SHARES] == SERVERS * SMALL
        ask = partial(cloud.answer, flavor=cloud.sized("large", LARGE))
        cloud.gate, begin = threading.Barrier(SERVERS), time.monotonic()
        with monitor.watching(), ThreadPoolExecutor(SERVERS) as pool:
            answers = dict(zip(servers, pool.map(ask, servers), strict=True))
        seconds, most = time.monotonic() - begin, len(monitor.oversold)
        sys.stdout.write(f"\n{SERVERS} changes in {seconds:.1f} s; {most} looks at an excess\n")
        assert Counter(answers.values()) == {"202": SERVERS // 2, "409 True": SERVERS // 2}
        cloud.report(servers[0])
        for server, status in answers.items():
            tier, shares = ("large", LARGE) if status == "202" else ("small", SMALL)
            cloud.check(server, tier, weight=shares, shares=shares)
        assert cloud.tree.used()["one"][SHARES] == SERVERS * crowd.SHARES_OF_CPU
    assert has_guard or not monitor.oversold


@contextmanager
def restored(database: Database) -> Iterator[None]:
    """Restore the database after the context."""
    before = database.save()
    try:
        yield
    finally:
        database.restore(before)
