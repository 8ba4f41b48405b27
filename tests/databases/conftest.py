"""Databases of Debian, and a Placement over each.

A run takes one of the databases, in turn, and a part of the operations and faults;
``CPU_TIERS_DAYS=1`` takes all of both.
"""

from collections.abc import Iterator

import pytest

from tests import draws
from tests.databases.servers import SERVERS, placement
from tests.databases.stored import Database


@pytest.fixture(scope="session", params=draws.in_turn(list(SERVERS)))
def database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Database]:
    """An empty database for Placement."""
    with SERVERS[request.param](tmp_path_factory.mktemp(request.param), "placement") as url:
        stored = Database(url)
        yield stored
        stored.close()


@pytest.fixture(scope="session")
def placement_url(database: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Placement over the database that makes one attempt to allocate in each request."""
    folder = tmp_path_factory.mktemp("placement")
    with placement(folder, database.url, allocation_conflict_retry_count=1) as url:
        yield url
