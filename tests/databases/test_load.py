"""Operations of 16 claimers at once: nothing is sold twice, and each answer was true."""

import os
import sys
import uuid
from collections.abc import Iterator

import pytest
import sqlalchemy
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.model.candidates import AllocationRequest
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.records import Inventories
from cpu_tiers.tools.placement.allocations import claim
from cpu_tiers.tools.placement.client import PlacementClient
from tests import draws
from tests.databases.load import Load, Monitor
from tests.databases.operations import Outcome
from tests.databases.stored import Database

FULL, SHORT = 10_000, 200
OPERATIONS = int(os.environ.get("CPU_TIERS_OPERATIONS") or (FULL if draws.DAYS == 1 else SHORT))


@pytest.fixture
def clean(database: Database, placement_url: str) -> Iterator[None]:
    """Restore the database after the test."""
    before = database.save()
    yield
    database.restore(before)


@pytest.mark.usefixtures("clean")
def test_nothing_is_sold_twice(database: Database, placement_url: str) -> None:
    figures = Load(placement_url, database, f"{draws.SEED}").run(OPERATIONS)
    sys.stdout.write(f"\n{database.engine.dialect.name}: {figures}\n")
    assert figures.oversold == ()
    assert figures.faults == ()
    assert figures.without_success == ()
    assert figures.of(Outcome.DONE) > OPERATIONS / 4


@pytest.mark.usefixtures("clean")
def test_the_monitor_sees_amounts_that_are_sold_twice(
    database: Database, placement_url: str
) -> None:
    """More than there is of a class, and a class without an inventory."""
    transport = Adapter(Session(auth=Token(placement_url, "admin")), service_type="placement")
    client = PlacementClient(transport)
    provider = client.create_provider("cn1")
    inventory = {"VCPU": Inventory(total=8, reserved=2, max_unit=8, allocation_ratio=1.5)}
    client.set_inventories(provider.uuid, Inventories(generation=0, by_class=inventory))
    request = AllocationRequest(allocations={provider.uuid: {"VCPU": 8}})
    claim(client, str(uuid.uuid4()), request, project_id="p", user_id="u")
    monitor = Monitor(database)
    monitor.look()
    assert list(monitor.oversold) == []
    with database.engine.begin() as connection:
        connection.execute(sqlalchemy.text("UPDATE allocations SET used = 10"))
    monitor.look()
    with database.engine.begin() as connection:
        connection.execute(sqlalchemy.text("DELETE FROM inventories"))
    monitor.look()
    # (8 - 2) * 1.5 = 9
    assert list(monitor.oversold) == ["cn1: 10 of 9 VCPU", "cn1: 10 of None VCPU"]
