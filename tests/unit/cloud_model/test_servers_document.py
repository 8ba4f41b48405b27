"""The servers of a snapshot: every fault with its place."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    IMAGE,
    UNREAD,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)

FLAVOR = Flavor(name="f", vcpus=2, memory_mb=4)


def snapshot(**servers: SnapshotServer) -> Snapshot:
    return Snapshot(providers=(), consumers={}, servers=SnapshotServers(servers=servers))


def test_equal_flavors_stand_once_in_the_document() -> None:
    web, db = (SnapshotServer(name=name, flavor=FLAVOR) for name in ("web", "db"))
    given = snapshot(a=web, b=db, c=SnapshotServer(name="c"))
    document = given.to_json()
    assert [flavor["name"] for flavor in document["server_flavors"]] == ["f"]  # type: ignore[attr-defined]  # a list
    assert Snapshot.parse(document, where="s") == given


WHOLE = SnapshotServers(
    servers={
        "a": SnapshotServer(
            name="web",
            flavor=FLAVOR,
            state="ACTIVE",
            is_locked=True,
            lock_reason="mine",
            host="cn1",
            project="acme",
            zone="az1",
            hints={"different_host": ("b", "c")},
            image=Image("debian", {"hw_disk_bus": "virtio"}),
        ),
        "b": SnapshotServer(name="db", is_from_volume=True, unread=frozenset({IMAGE})),
    },
    migrations={"m": ServerMigration(server="a", kind="resize", status="finished", source="cn2")},
    aggregates={
        "g": SnapshotAggregate(name="fast", zone="az1", hosts=("cn1",), metadata={"ssd": "true"})
    },
    unread=frozenset(),
)


def test_all_that_nova_says_is_read_back() -> None:
    given = Snapshot(providers=(), consumers={}, servers=WHOLE)
    assert Snapshot.parse(given.to_json(), where="s") == given


def test_a_snapshot_of_version_2_leaves_unknown_what_it_does_not_have() -> None:
    document = snapshot(a=SnapshotServer(name="web")).to_json()
    for key in ("server_images", "migrations", "host_aggregates", "unread"):
        del document[key]
    servers = Snapshot.parse({**document, "version": 2}, where="s").servers
    assert servers is not None
    assert servers.unread == frozenset(UNREAD)


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
        ("servers", {"a": {"image": 0}}, "a, image: got 0; give the number of one of server_im"),
        ("servers", {"a": {"hints": {"group": "g"}}}, "hints, group: got 'g'; give a list"),
        ("servers", {"a": {"volume": "no"}}, "a, volume: got 'no'; give true or false"),
        ("servers", {"a": {"unread": ["mood"]}}, "unread: got 'mood'; cpu-tiers knows host"),
        ("unread", ["mood"], "s, unread: got 'mood'; cpu-tiers knows host"),
        ("migrations", {"m": {"server": 7}}, "migrations, m, server: got 7; give a text"),
        ("migrations", {"m": {"to": "x"}}, "migrations, m, to: got 'x'; cpu-tiers knows"),
        ("host_aggregates", {"g": {"metadata": {"k": 7}}}, "g, metadata, k: got 7; give a text"),
        ("server_images", [{"properties": 7}], "server_images, 0, properties: got 7; give an obj"),
        ("servers", {"a": 7}, "s, servers, a: got 7; give an object"),
        ("servers", {"a": {"flavor": 9}}, "servers, a, flavor: got 9; give the number"),
        ("servers", {"a": {"color": "red"}}, "servers, a, color: got 'red'; cpu-tiers knows"),
        ("servers", {"a": {"locked": 1}}, "servers, a, locked: got 1; give true or false"),
        ("groups", {"g": {"most": 0}}, "groups, g, most: got 0; give a whole number from 1"),
        ("groups", {"g": {"members": [7]}}, "groups, g, members: got 7; give a text"),
        ("services", {"h": 7}, "services, h: got 7; give a text"),
        ("down", [7], "s, down: got 7; give a text"),
    ],
)
def test_faults_of_servers(key: str, value: object, fault: str) -> None:
    with pytest.raises(InvalidInput) as error:
        Snapshot.parse({**snapshot(a=SnapshotServer(name="web")).to_json(), key: value}, where="s")
    assert fault in str(error.value)
