"""The servers of a snapshot: every fault with its place."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer, SnapshotServers

FLAVOR = Flavor(name="f", vcpus=2, memory_mb=4)


def snapshot(**servers: SnapshotServer) -> Snapshot:
    return Snapshot(providers=(), consumers={}, servers=SnapshotServers(servers=servers))


def test_equal_flavors_stand_once_in_the_document() -> None:
    web, db = (SnapshotServer(name=name, flavor=FLAVOR) for name in ("web", "db"))
    given = snapshot(a=web, b=db, c=SnapshotServer(name="c"))
    document = given.to_json()
    assert [flavor["name"] for flavor in document["server_flavors"]] == ["f"]  # type: ignore[attr-defined]  # a list
    assert Snapshot.parse(document, where="s") == given


@pytest.mark.parametrize(
    ("key", "value", "fault"),
    [
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
