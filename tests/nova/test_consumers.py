"""The owner of a consumer: which of the two flavors of a resize its allocations were made for."""

from types import SimpleNamespace
from typing import Any

import pytest
from nova import objects

from cpu_tiers.accounting.holdings import ConsumerId, ProviderId, ProviderName
from cpu_tiers.nova.consumers import ComputeNode, ConsumerRecord, find_consumer_records

SERVER, MIGRATION = ConsumerId("the-server"), ConsumerId("the-migration")


def flavor(name: str) -> Any:
    sizes = {"vcpus": 1, "memory_mb": 512, "root_gb": 0, "ephemeral_gb": 0, "swap": 0}
    return objects.Flavor(flavorid=name, name=name, extra_specs={}, **sizes)


def record(consumer: ConsumerId, move: str = "", **flavors: Any) -> ConsumerRecord:
    known = {name: value and flavor(value) for name, value in flavors.items()}
    server = SimpleNamespace(
        uuid=SERVER,
        display_name="web",
        project_id="p",
        user_id="u",
        image_meta=objects.ImageMeta(properties=objects.ImageMetaProps()),
        **{"flavor": flavor("now"), "old_flavor": None, "new_flavor": None, **known},
    )
    migration = SimpleNamespace(migration_type=move, uuid=MIGRATION) if move else None
    return ConsumerRecord(consumer=consumer, server=server, move=migration)


BOTH: dict[str, Any] = {"old_flavor": "old", "new_flavor": "new"}


@pytest.mark.parametrize(
    ("consumer", "name"),
    [
        pytest.param(record(SERVER), "now", id="a server at rest"),
        pytest.param(record(SERVER, "live-migration", **BOTH), "now", id="a move has one flavor"),
        pytest.param(record(SERVER, "resize", **BOTH), "new", id="the destination of a resize"),
        pytest.param(record(MIGRATION, "resize", **BOTH), "old", id="the source of a resize"),
        pytest.param(record(MIGRATION, "resize"), "now", id="a source before the old one is kept"),
        pytest.param(record(SERVER, "resize"), None, id="a destination without the request"),
    ],
)
def test_allocations_belong_to_a_flavor(consumer: ConsumerRecord, name: str | None) -> None:
    owner = consumer.owner
    assert (owner and owner.flavor.name) == name


def test_a_migration_and_the_server_have_different_names() -> None:
    owner = record(MIGRATION, "live-migration").owner
    assert owner is not None
    assert owner.name == "server web (the-server), source of migration the-migration"
    assert (owner.server, owner.project_id, owner.user_id) == (SERVER, "p", "u")


def test_the_database_is_not_asked_about_no_consumer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(objects.MigrationList, "get_in_progress_and_error")
    node = ComputeNode(context=None, host="one", name=ProviderName("one"), uuid=ProviderId("u"))
    assert find_consumer_records(node, [], [SERVER]) == {}
