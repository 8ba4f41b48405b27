"""What is known of servers, and what is not."""

from cpu_tiers.tools.cloud_model.snapshot_servers import (
    HOST,
    IMAGE,
    UNREAD,
    SnapshotServer,
    SnapshotServers,
)


def test_what_is_not_known_of_a_server_or_of_any() -> None:
    volume = SnapshotServer(name="db", is_from_volume=True, unread=frozenset({IMAGE}))
    servers = {"a": volume, "b": SnapshotServer(name="web")}
    known = SnapshotServers(servers=servers, unread=frozenset({HOST}))
    assert known.unread_of("a") == {HOST, IMAGE}
    assert known.unread_of("b") == {HOST}


def test_by_default_nothing_is_known_but_flavors_states_and_groups() -> None:
    assert SnapshotServers().unread == UNREAD.keys()
