"""The providers in Placement's database, against Placement's answers for each provider."""

import random
from contextlib import closing

import pytest
from placement import db_api

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.placement.records import Consumer
from cpu_tiers.tools.database.connection import Reader
from cpu_tiers.tools.database.stored_providers import SCHEMA, read_placement
from cpu_tiers.tools.placement.client import PlacementClient
from tests.functional.placement.providing import content, one_by_one, provide
from tests.random_clouds.providers import placement_rows
from tests.random_clouds.states import CLASSES, TRAITS, draw_state, write_state

SERVER = "00000000-0000-4000-8000-000000000001"


@pytest.mark.parametrize("number", range(5))
def test_drawn_clouds(number: int, embedded: PlacementClient) -> None:
    custom = [name for name in TRAITS if name.startswith("CUSTOM_")]
    embedded.ensure_names(classes=[CLASSES[-1]], traits=custom)
    write_state(draw_state(random.Random(f"databases {number}")))
    with placement_rows() as rows:  # Placement's lists of rows need a time
        for name in ("resource_providers", "inventories", "allocations"):
            rows.execute(f"UPDATE {name} SET created_at = '2026-01-01 00:00:00'")  # noqa: S608
        for name in ("projects", "users"):
            rows.execute(f"INSERT INTO {name} (id, external_id) VALUES (1, 'acme')")  # noqa: S608
        rows.execute(
            "INSERT INTO consumers (uuid, project_id, user_id, generation)"
            " SELECT DISTINCT consumer_id, 1, 1, 1 FROM allocations"
        )
    url = db_api.get_placement_engine().url
    with closing(Reader(url, SCHEMA, "Placement's database")) as reader:
        assert content(read_placement(reader)) == one_by_one(embedded)


def test_a_deletion_changes_no_generation(embedded: PlacementClient) -> None:
    """Why a second reading by the API cannot ask only for what changed: docs/admin/reading.rst."""
    host = provide(embedded, "host", VCPU=8)
    before = embedded.listed_providers()
    portion = Portion.by_id({host: {"VCPU": 2}})
    consumer = Consumer(uuid=SERVER, allocations=portion, project_id="p", user_id="u")
    embedded.set_consumers(consumer)
    claimed = embedded.listed_providers()
    assert claimed != before
    embedded.delete_allocations(SERVER)
    assert embedded.allocations(host) == {}
    assert embedded.listed_providers() == claimed
