"""``--databases``: Placement's own database, on SQLite, in place of its API."""

import json
import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from placement import db_api
from sqlalchemy import event

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.model.inventory import Inventory, ProviderTree, ResourceProvider
from cpu_tiers.placement.records import MIGRATION, Consumer
from cpu_tiers.tools.database.connection import DatabaseUnavailable, Reader, table
from cpu_tiers.tools.database.stored_providers import SCHEMA, read_consumer, read_placement
from cpu_tiers.tools.placement.client import PlacementClient
from cpu_tiers.tools.placement.sync import sync
from tests.functional.placement.providing import content, provide, put_into_aggregate
from tests.random_clouds.providers import placement_rows

Command = Callable[..., Any]
SERVER, MOVING = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
SHARING = "MISC_SHARES_VIA_AGGREGATE"
PASSWORD = "pa/ss@word"


@pytest.fixture
def database(url: str) -> str:
    """The URL of the database of the Placement at ``url``."""
    address: str = db_api.get_placement_engine().url.render_as_string(hide_password=False)
    return address


@pytest.fixture
def conf(placement_conf: Path, database: str) -> Path:
    """The nova.conf of the Placement, and the lines of placement.conf."""
    with placement_conf.open("a") as file:
        file.write(f"[placement_database]\nconnection = {database}\n")
    return placement_conf


@pytest.fixture
def cloud(client: PlacementClient) -> None:
    """A host with a NUMA node, a host with a trait, a pool that both share, and consumers."""
    sync(
        client,
        ProviderTree(
            providers=(
                ResourceProvider(
                    name="cn1",
                    inventories={"VCPU": Inventory(total=8, max_unit=8, allocation_ratio=1.5)},
                    traits=frozenset({"COMPUTE_NODE"}),
                ),
                ResourceProvider(
                    name="cn1_NUMA0",
                    parent="cn1",
                    inventories={"MEMORY_MB": Inventory(total=64, max_unit=64, reserved=4)},
                    traits=frozenset({"HW_NUMA_ROOT"}),
                ),
            ),
            managed_classes=frozenset({"VCPU", "MEMORY_MB"}),
        ),
    )
    client.ensure_names(traits=["CUSTOM_OF_NOBODY"])
    traits = ["COMPUTE_NODE", "HW_CPU_X86_AVX2"]
    provide(client, "cn2", traits, VCPU=8, MEMORY_MB=640, DISK_GB=9)
    provide(client, "pool", [SHARING], DISK_GB=90)
    uuids = {each.name: each.uuid for each in client.providers()}
    put_into_aggregate(client, uuids["cn1"], uuids["cn2"], uuids["pool"])
    held = {
        SERVER: {
            uuids["cn1"]: {"VCPU": 2},
            uuids["cn1_NUMA0"]: {"MEMORY_MB": 8},
            uuids["pool"]: {"DISK_GB": 3},
        },
        MOVING: {uuids["cn2"]: {"VCPU": 1, "MEMORY_MB": 512}},
    }
    for uuid, kind in ((SERVER, "INSTANCE"), (MOVING, MIGRATION)):
        client.set_consumers(
            Consumer(
                uuid=uuid,
                allocations=Portion.by_id(held[uuid]),
                project_id="p",
                user_id="u",
                consumer_type=kind,
            )
        )


@pytest.fixture
def reader(database: str) -> Iterator[Reader]:
    with closing(Reader(database, SCHEMA, "Placement's database")) as reader:
        yield reader


def snapshot(run: Command, conf: Path, path: Path, *arguments: str) -> dict[str, Any]:
    run("--config-file", conf, "cloud", "snapshot", path, "--no-flavors", *arguments)
    document: dict[str, Any] = json.loads(path.read_text())
    assert document.pop("taken")
    return document


@pytest.mark.usefixtures("cloud")
def test_both_sources_give_one_snapshot(
    run: Command, conf: Path, seen: list[str], tmp_path: Path
) -> None:
    by_api = snapshot(run, conf, tmp_path / "api")
    assert seen
    seen.clear()
    by_database = snapshot(run, conf, tmp_path / "database", "--databases")
    assert by_database == by_api
    assert [each["name"] for each in by_api["providers"]] == ["cn1", "cn1_NUMA0", "cn2", "pool"]
    assert {*by_api["consumers"]} == {SERVER, MOVING}
    assert "CUSTOM_OF_NOBODY" in by_database["traits"]
    with conf.open("a") as file:
        file.write("[cpu_tiers]\nread_databases = true\n")
    assert snapshot(run, conf, tmp_path / "option") == by_api
    assert seen == []
    assert snapshot(run, conf, tmp_path / "again", "--no-databases") == by_api
    assert seen


@pytest.mark.usefixtures("cloud")
@pytest.mark.parametrize(("is_old", "kind"), [(False, MIGRATION), (True, "INSTANCE")])
def test_a_consumer(is_old: bool, kind: str, database: str, client: PlacementClient) -> None:
    if is_old:  # of a Placement before consumer types
        with placement_rows() as rows:
            rows.execute("UPDATE consumers SET consumer_type_id = NULL")
    with closing(Reader(database, SCHEMA, "Placement's database")) as reader:
        now, by_api = read_consumer(reader, MOVING), client.consumer(MOVING)
    assert now.allocations == by_api.allocations != {}
    assert now.consumer_type == by_api.consumer_type == kind


def without_states(answer: str) -> str:
    """Return an answer in a line, without why nobody says which hosts are up."""
    return re.sub(r"are down: .*?(?=\"|Nova's weighers|$)", "are down", " ".join(answer.split()))


@pytest.mark.usefixtures("cloud")
def test_commands_ask_only_the_databases(
    run: Command, flavor: Command, conf: Path, seen: list[str], tmp_path: Path
) -> None:
    """Each answer is that of a snapshot; without Nova's databases, nobody says who is up."""
    file = flavor({"trait:HW_CPU_X86_AVX2": "required"}, vcpus=2, ram=64, disk=1)
    path = tmp_path / "cloud.json"
    snapshot(run, conf, path)
    seen.clear()
    for status, command in (
        (0, ("explain", file, "--all")),
        (0, ("capacity", file, "--all")),
        (0, ("cloud", "show", "--all")),
        (0, ("flavor", "check", file, "--hosts")),
    ):
        start = ("--config-file", conf, *command)
        by_database, by_snapshot = (
            run(*start, *source, status=status).stdout
            for source in (["--databases"], ["--snapshot", path])
        )
        assert by_database
        assert without_states(by_database) == without_states(by_snapshot)
    assert seen == []


@pytest.mark.usefixtures("cloud")
def test_metrics_alone(run: Command, conf: Path, seen: list[str], tmp_path: Path) -> None:
    """What is not printed costs nothing, and the metrics stay the same but for their time."""
    seen.clear()
    show = ("--config-file", conf, "cloud", "show", "--databases")
    files = tmp_path / "a.prom", tmp_path / "b.prom"
    assert run(*show, "--prometheus", files[0]).stdout
    assert run(*show, "--metrics-only", "--prometheus", files[1]).stdout == ""
    with_text, alone = (
        [line for line in file.read_text().splitlines() if "timestamp_seconds " not in line]
        for file in files
    )
    assert alone == with_text
    assert 'cpu_tiers_cloud_hosts{state="enabled"} 2' in alone
    refused = run(*show, "--metrics-only", status=1).stderr
    assert "--metrics-only: given without --prometheus" in refused
    assert seen == []


def test_a_reader_cannot_write(reader: Reader, database: str) -> None:
    """All statements of a reading are SELECTs, and the connection itself refuses the others."""
    statements: list[str] = []
    event.listen(
        reader._connection.engine,
        "before_cursor_execute",
        lambda *given: statements.append(given[2]),
    )
    read_placement(reader)
    read_consumer(reader, SERVER)
    assert len(statements) == 10  # eight tables, and a consumer with its type
    assert all(statement.startswith("SELECT ") for statement in statements)
    write = sa.insert(table("traits", "name")).values(name="CUSTOM_X")
    with pytest.raises(sa.exc.OperationalError, match="readonly"):
        reader._connection.execute(write)
    with closing(sqlite3.connect(database.removeprefix("sqlite:///"))) as other:
        assert not other.execute("SELECT id FROM traits WHERE name = 'CUSTOM_X'").fetchall()


@pytest.mark.usefixtures("cloud")
def test_one_moment(database: str, client: PlacementClient) -> None:
    """What is written while a transaction reads belongs to the next transaction."""
    with placement_rows() as rows:
        rows.execute("PRAGMA journal_mode = WAL")  # SQLite then has writers beside readers
    with closing(Reader(database, SCHEMA, "Placement's database")) as reader:
        before = content(read_placement(reader))
        client.delete_allocations(SERVER)
        assert read_consumer(reader, SERVER).allocations
        assert content(read_placement(reader)) == before
    with closing(Reader(database, SCHEMA, "Placement's database")) as reader:
        assert not read_consumer(reader, SERVER).allocations
        assert {*read_placement(reader).consumers} == {MOVING}


REFUSALS = {
    "a newer migration": (
        "UPDATE alembic_version SET version_num = 'newer'",
        "Placement's database has the migration newer, and cpu-tiers knows those of Placement 13"
        " to 16; leave out --databases to ask the API",
    ),
    "no migration": (
        "DELETE FROM alembic_version",
        "Placement's database has the migration of no release,",
    ),
    "no table of migrations": (
        "DROP TABLE alembic_version",
        "Placement's database cannot be read: no such table: alembic_version; cpu-tiers knows the"
        " tables of Placement 13 to 16, and needs the right to SELECT from them; leave out"
        " --databases to ask the API",
    ),
    "a table is missing": (
        "DROP TABLE resource_provider_traits",
        "Placement's database cannot be read: no such table: resource_provider_traits;",
    ),
    "a column is missing": (
        "ALTER TABLE inventories RENAME COLUMN reserved TO kept",
        "Placement's database cannot be read: no such column: inventories.reserved;",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_an_unknown_schema(case: str, run: Command, conf: Path, tmp_path: Path) -> None:
    statement, message = REFUSALS[case]
    with placement_rows() as rows:
        rows.execute(statement)
    command = ("--config-file", conf, "cloud", "snapshot", tmp_path / "no", "--no-flavors")
    said = run(*command, "--databases", status=1).stderr
    assert said.count("\n") == 1
    assert message in said


ADDRESSES = {
    "": "nova.conf, [placement_database] connection: not set; give --config-file"
    " /etc/placement/placement.conf, beside nova.conf",
    "no url": "Placement's database: its URL is none of SQLAlchemy; give the URL of the service's",
    "nothing://u:pa%2Fss%40word@h/d": "Placement's database: its URL is none of SQLAlchemy;",
    "mysql+oursql://u:pa%2Fss%40word@h/d": "Placement's database: its URL ",
    "sqlite:////nowhere/placement": "Placement's database does not answer: unable to open"
    " database file; check its URL, or leave out --databases to ask the API",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_that_is_wrong(
    address: str, run: Command, save: Command, tmp_path: Path
) -> None:
    path = save(f"[placement_database]\nconnection = {address}\n")
    command = ("--config-file", path, "cloud", "snapshot", tmp_path / "no")
    said = run(*command, "--no-flavors", "--databases", status=1)
    assert ADDRESSES[address] in said.stderr
    for form in (PASSWORD, "pa%2Fss%40word"):
        assert form not in said.stdout + said.stderr


def test_a_file_that_is_missing_is_not_made(run: Command, save: Command, tmp_path: Path) -> None:
    missing = tmp_path / "placement?of #1"
    conf = save(f"[placement_database]\nconnection = sqlite:///{missing}\n")
    said = run("--config-file", conf, "cloud", "show", "--databases", status=1).stderr
    assert said.startswith("Placement's database does not answer: unable to open database file")
    assert list(tmp_path.glob("placement*")) == []


def test_one_source(run: Command, conf: Path, tmp_path: Path) -> None:
    start = ("--config-file", conf, "cloud", "show", "--databases")
    said = run(*start, "--snapshot", tmp_path / "cloud.json", status=1).stderr
    assert "--snapshot: --databases is given, too; leave out one of the two" in said
    embedded = ("--placement", "embedded", "cloud", "show", "--databases")
    assert "--databases: --placement embedded is given, too" in run(*embedded, status=1).stderr


def test_an_optional_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg2", None)
    with pytest.raises(DatabaseUnavailable, match="needs the Python library psycopg2; install"):
        Reader("postgresql+psycopg2://u@h/d", SCHEMA, "Placement's database")
