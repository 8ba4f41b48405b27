"""What is not known of the servers of a snapshot."""

from cpu_tiers.tools.cloud_model.snapshot_servers import (
    HINTS,
    IMAGE,
    UNREAD,
    SnapshotServer,
    SnapshotServers,
)


def test_what_no_server_tells_and_what_one_server_does_not_tell() -> None:
    from_volume = SnapshotServer(name="web", is_from_volume=True, unread=frozenset({IMAGE}))
    servers = {"a": from_volume, "b": SnapshotServer(name="db")}
    known = SnapshotServers(servers=servers, unread=frozenset({HINTS}))
    assert known.unread_of("a") == {HINTS, IMAGE}
    assert known.unread_of("b") == {HINTS}


def test_a_version_without_these_facts_knows_none_of_them() -> None:
    known = SnapshotServers(servers={"a": SnapshotServer(name="web")})
    assert known.unread_of("a") == UNREAD.keys()
