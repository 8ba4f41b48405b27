"""What each consumer is on each of its hosts: a table of what Nova and Placement say."""

from typing import Any

import pytest

from cpu_tiers.tools.cloud_model.consumers import Consumers, Role, consumer_parts, sold_roots
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    HOST,
    MIGRATIONS,
    ServerMigration,
    SnapshotServer,
    SnapshotServers,
)
from tests.unit.cloud_model.clouds import provider

ROOTS = {"one": "1", "two": "2", "three": "3"}


def server(host: str = "", state: str = "ACTIVE", task: str = "", **more: Any) -> SnapshotServer:
    return SnapshotServer(name="web", host=host, state=state, task=task, **more)


def move(
    kind: str, status: str, source: str = "one", target: str = "two", server: str = "a"
) -> ServerMigration:
    return ServerMigration(server=server, kind=kind, status=status, source=source, target=target)


def roles(consumer: str, held: str, **said: Any) -> dict[str, Role]:
    """Return the roles by root provider.

    :param held: the root providers of which the consumer has something.
    """
    servers = SnapshotServers(**{"unread": frozenset(), **said})
    return {part.root: part.role for part in Consumers(servers, ROOTS).parts(consumer, held)}


RESIZE = {"m": move("resize", "finished")}
LIVE = {"m": move("live-migration", "running")}
EVACUATED = {"m": move("evacuation", "done")}
UNKNOWN_HOST = frozenset({HOST, MIGRATIONS})


@pytest.mark.parametrize(
    ("consumer", "held", "said", "expected"),
    [
        pytest.param(
            "a", "1", {"servers": {"a": server("one")}}, {"1": Role.SERVER}, id="on its host"
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server("two", "VERIFY_RESIZE")}, "migrations": RESIZE}),
            {"2": Role.SERVER},
            id="a resized server is on the target",
        ),
        pytest.param(
            *("m", "1", {"servers": {"a": server("two", "VERIFY_RESIZE")}, "migrations": RESIZE}),
            {"1": Role.UNCONFIRMED},
            id="the migration of an unconfirmed resize has the source",
        ),
        pytest.param(
            *("a", "1", {"servers": {"a": server("one", "VERIFY_RESIZE")}}),
            {"1": Role.SERVER},
            id="a resize on the same host",
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server("one", task="migrating")}, "migrations": LIVE}),
            {"2": Role.TARGET},
            id="a live migration: the server has the target",
        ),
        pytest.param(
            *("m", "1", {"servers": {"a": server("one", task="migrating")}, "migrations": LIVE}),
            {"1": Role.SOURCE},
            id="a live migration: the migration has the source",
        ),
        pytest.param(
            "a",
            "12",
            {"servers": {"a": server("two")}, "migrations": EVACUATED, "down": ("1",)},
            {"1": Role.EVACUATED, "2": Role.SERVER},
            id="evacuated, and the old host is down",
        ),
        pytest.param(
            "a",
            "12",
            {"servers": {"a": server("two")}, "migrations": EVACUATED},
            {"1": Role.EVACUATED, "2": Role.SERVER},
            id="evacuated, and the old host is back without a start of its nova-compute",
        ),
        pytest.param(
            "a",
            "12",
            {
                "servers": {"a": server("one", task="rebuild_spawning")},
                "migrations": {"m": move("evacuation", "pre-migrating")},
            },
            {"1": Role.SERVER, "2": Role.TARGET},
            id="an evacuation in progress",
        ),
        pytest.param(
            *("a", "123", {"servers": {"a": server("three")}, "migrations": EVACUATED}),
            {"1": Role.EVACUATED, "2": Role.LEAKED, "3": Role.SERVER},
            id="an evacuation that is done is no reason for its target",
        ),
        pytest.param(
            *("a", "12", {"servers": {"a": server("two")}}),
            {"1": Role.LEAKED, "2": Role.SERVER},
            id="doubled",
        ),
        pytest.param(
            *("a", "12", {"servers": {"a": server("two")}, "down": ("1",)}),
            {"1": Role.LEAKED, "2": Role.SERVER},
            id="doubled: that a host is down is no evacuation where Nova lists none",
        ),
        pytest.param(
            "a",
            "12",
            {
                "servers": {"a": server("two")},
                "down": ("1",),
                "unread": frozenset({MIGRATIONS}),
            },
            {"1": Role.EVACUATED, "2": Role.SERVER},
            id="migrations that may not be read, and a host that is down",
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server("one")}}), {"2": Role.MISPLACED}, id="misplaced"
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server("gone")}}),
            {"2": Role.MISPLACED},
            id="misplaced: Placement does not have the host of Nova",
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server("one", task="rebuilding")}}),
            {"2": Role.TARGET},
            id="a server in a task is on its way",
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server(state="BUILD")}}),
            {"2": Role.TARGET},
            id="a server that is being created",
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server(state="SHELVED_OFFLOADED")}}),
            {"2": Role.LEAKED},
            id="a server on no host",
        ),
        pytest.param(
            *("a", "2", {"servers": {"a": server(state="SHELVED_OFFLOADED", task="spawning")}}),
            {"2": Role.TARGET},
            id="unshelving",
        ),
        pytest.param("x", "1", {"servers": {}}, {"1": Role.ORPHAN}, id="an orphan"),
        pytest.param(
            *("x", "1", {"services": {"2": "two"}}),
            {"1": Role.OTHER},
            id="no orphan on a host that Nova does not name: its cell may be down",
        ),
        pytest.param(
            *("x", "1", {"unread": frozenset({MIGRATIONS})}),
            {"1": Role.OTHER},
            id="no orphan if migrations are not known",
        ),
        pytest.param(
            *("x", "1", {"types": {"x": "CONTAINER"}}),
            {"1": Role.OTHER},
            id="a consumer of another service",
        ),
        pytest.param(
            *("x", "1", {"types": {"x": "MIGRATION"}}),
            {"1": Role.ORPHAN},
            id="a migration that is over has nothing to hold",
        ),
        pytest.param(
            "a",
            "12",
            {"servers": {"a": server()}, "down": ("1",), "unread": UNKNOWN_HOST},
            {"1": Role.EVACUATED, "2": Role.SERVER},
            id="version 2: evacuated by the state of the host",
        ),
        pytest.param(
            *("a", "12", {"servers": {"a": server()}, "unread": UNKNOWN_HOST}),
            {"1": Role.UNSETTLED, "2": Role.UNSETTLED},
            id="version 2: nobody says on which host",
        ),
        pytest.param(
            "a",
            "1",
            {"servers": {"a": server(state="UNKNOWN", unread=UNKNOWN_HOST)}},
            {"1": Role.SERVER},
            id="a server of a cell that does not answer is where Placement has it",
        ),
    ],
)
def test_roles(consumer: str, held: str, said: Any, expected: dict[str, Role]) -> None:
    assert roles(consumer, held, **said) == expected


@pytest.mark.parametrize(
    ("said", "held", "sold"),
    [
        pytest.param(
            {"servers": {"a": server("two")}, "migrations": EVACUATED}, "12", "2", id="evacuated"
        ),
        pytest.param(
            {
                "servers": {"a": server("one", task="rebuilding")},
                "migrations": {"m": move("evacuation", "pre-migrating")},
            },
            "12",
            "1",
            id="an evacuation in progress is paid once",
        ),
        pytest.param(
            {"servers": {"a": server("one", task="migrating")}, "migrations": LIVE},
            "2",
            "2",
            id="a live migration is paid on the target",
        ),
        pytest.param({"servers": {"a": server("one")}}, "2", "2", id="misplaced, and paid"),
        pytest.param({"servers": {}}, "2", "", id="an orphan is nobody's"),
    ],
)
def test_what_a_server_pays_for_once(said: Any, held: str, sold: str) -> None:
    servers = SnapshotServers(**{"unread": frozenset(), **said})
    assert sold_roots(Consumers(servers, ROOTS).parts("a", held)) == {*sold}


def test_without_nova_each_consumer_is_a_server() -> None:
    consumers = Consumers(None, ROOTS)
    assert [part.role for part in consumers.parts("a", "1")] == [Role.SERVER]
    assert {part.role for part in consumers.parts("a", "12")} == {Role.UNSETTLED}


def test_commands_name_the_consumer_and_the_providers_of_the_host() -> None:
    servers = SnapshotServers(servers={"a": server("two")}, unread=frozenset())
    leaked, _ = Consumers(servers, ROOTS).parts("a", "12")
    assert leaked.mend(["1", "1-node"]).endswith("--provider 1 --provider 1-node a")
    migration = SnapshotServers(migrations=RESIZE, unread=frozenset())
    (source,) = Consumers(migration, ROOTS).parts("m", "1")
    assert source.mend(["1"]) == "openstack server resize confirm a, or resize revert"


def test_a_shared_pool_is_no_host() -> None:
    snapshot = Snapshot(
        providers=(provider("one", VCPU=4), provider("pool", DISK_GB=9)),
        consumers={
            "a": {"one": {"VCPU": 1}, "pool": {"DISK_GB": 1}},
            "x": {"pool": {"DISK_GB": 1}},
        },
        servers=SnapshotServers(
            servers={"a": server("one")}, services={"one": "one"}, unread=frozenset()
        ),
    )
    parts = [[(part.root, part.role) for part in each] for each in consumer_parts(snapshot)]
    assert parts == [[("one", Role.SERVER)], [("pool", Role.OTHER)]]
