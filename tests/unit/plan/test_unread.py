"""What decides about the hosts of servers and was not read."""

from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServer, SnapshotServers
from cpu_tiers.tools.plan.bindings import FilterOptions
from cpu_tiers.tools.plan.unread import unread_of

FILTERS = FilterOptions()


def cloud(*unread: str, of_a: tuple[str, ...] = (), zone: str = "") -> Snapshot:
    servers = {
        "a": SnapshotServer(name="a", unread=frozenset(of_a)),
        "b": SnapshotServer(name="b", zone=zone),
    }
    return Snapshot(
        providers=(),
        consumers={},
        servers=SnapshotServers(servers=servers, unread=frozenset(unread)),
    )


def test_nothing() -> None:
    assert unread_of(cloud(), FILTERS) == ()


def test_what_is_not_known_of_all_servers_and_of_some() -> None:
    assert unread_of(cloud("host", "zone", of_a=("image",)), FILTERS) == (
        "host, zone of the servers, as Nova's API has them since 2.100",
        "image of 1 of 2 servers",
    )


def test_what_only_a_filter_or_a_zone_needs() -> None:
    assert unread_of(cloud("hints", "aggregates"), FILTERS) == ()
    hinting = FilterOptions(enabled=frozenset({"SameHostFilter"}))
    assert "hints of the servers" in unread_of(cloud("hints"), hinting)[0]
    assert "aggregates of the servers" in unread_of(cloud("aggregates", zone="az"), FILTERS)[0]


def test_a_filter_that_nobody_here_knows() -> None:
    own = FilterOptions(enabled=frozenset({"ComputeFilter", "OwnFilter", "JsonFilter"}))
    assert unread_of(cloud(), own) == (
        "what the filters of nova-scheduler decide: JsonFilter, OwnFilter",
    )
