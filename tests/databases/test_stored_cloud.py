"""A reading of MariaDB and PostgreSQL: what Placement answers, at one moment, without a write."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
import sqlalchemy as sa
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

from cpu_tiers.accounting.holdings import Portion
from cpu_tiers.placement.records import MIGRATION, Consumer
from cpu_tiers.tools.database.connection import _BEGIN, DatabaseUnavailable, Reader, table
from cpu_tiers.tools.database.stored_providers import SCHEMA, read_consumer, read_placement
from cpu_tiers.tools.placement.client import PlacementClient
from tests.databases.stored import Database
from tests.functional.placement.providing import content, one_by_one, provide, put_into_aggregate

SERVER, MOVING = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
USER, PASSWORD = "reader", "only:sel@ct"


@pytest.fixture
def client(database: Database, placement_url: str) -> Iterator[PlacementClient]:
    """A Placement with two hosts, a pool that both share, and two consumers."""
    before = database.save()
    session = Session(auth=Token(placement_url, "admin"))
    client = PlacementClient(Adapter(session, service_type="placement"))
    traits = ["COMPUTE_NODE", "HW_CPU_X86_AVX2"]
    one, two = (provide(client, name, traits, VCPU=8, MEMORY_MB=640) for name in ("one", "two"))
    pool = provide(client, "pool", ["MISC_SHARES_VIA_AGGREGATE"], DISK_GB=90)
    put_into_aggregate(client, one, two, pool)
    for uuid, kind, held in (
        (SERVER, "INSTANCE", {one: {"VCPU": 2}, pool: {"DISK_GB": 3}}),
        (MOVING, MIGRATION, {two: {"VCPU": 1, "MEMORY_MB": 64}}),
    ):
        client.set_consumers(
            Consumer(
                uuid=uuid,
                allocations=Portion.by_id(held),
                project_id="p",
                user_id="u",
                consumer_type=kind,
            )
        )
    yield client
    database.restore(before)


def opened(url: str | sa.URL) -> Reader:
    return Reader(url, SCHEMA, "Placement's database")


def test_the_cloud_of_placement(database: Database, client: PlacementClient) -> None:
    with closing(opened(database.url)) as reader:
        assert content(read_placement(reader)) == one_by_one(client)
        assert read_consumer(reader, MOVING).consumer_type == MIGRATION
        assert read_consumer(reader, SERVER).allocations == client.consumer(SERVER).allocations


def test_a_host_with_many_traits(
    database: Database, client: PlacementClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row has all traits of a provider, whose length MariaDB and MySQL limit."""
    traits = [f"CUSTOM_{number}" for number in range(400)]
    client.ensure_names(classes=[], traits=traits)
    provide(client, "three", traits, VCPU=8)
    is_mysql = database.engine.dialect.name == "mysql"
    with database.engine.connect() as connection:
        if is_mysql:  # a site may set less than the 1024 bytes of MySQL
            connection.exec_driver_sql("SET GLOBAL group_concat_max_len = 100")
        try:
            with closing(opened(database.url)) as reader:
                assert content(read_placement(reader)) == one_by_one(client)
            if not is_mysql:
                return
            # Where the limit holds all the same, such as that of a packet, nothing is read.
            monkeypatch.setitem(_BEGIN, "mysql", _BEGIN["mysql"][1:])
            message = r"^Placement's database cannot be read: it cut a text of several rows;"
            for driver in ("mysql+pymysql", "mariadb+pymysql"):
                url = sa.make_url(database.url).set(drivername=driver)
                with (
                    closing(opened(url)) as reader,
                    pytest.raises(DatabaseUnavailable, match=message),
                ):
                    read_placement(reader)
        finally:
            if is_mysql:
                connection.exec_driver_sql("SET GLOBAL group_concat_max_len = DEFAULT")


def test_one_moment(database: Database, client: PlacementClient) -> None:
    """What Placement writes after the begin of a transaction is not in the transaction."""
    with closing(opened(database.url)) as reader:
        before = one_by_one(client)
        client.delete_allocations(SERVER)
        provide(client, "three", VCPU=8)
        assert content(read_placement(reader)) == before
    with closing(opened(database.url)) as reader:
        assert content(read_placement(reader)) == one_by_one(client) != before


def test_a_reader_cannot_write(database: Database, client: PlacementClient) -> None:
    """The transaction refuses each statement that writes, whatever the rights of the user are."""
    traits = table("traits", "name")
    for write in (
        sa.insert(traits).values(name="CUSTOM_X"),
        sa.update(traits).values(name="CUSTOM_X"),
        sa.delete(traits),
    ):
        with (
            closing(opened(database.url)) as reader,
            pytest.raises(sa.exc.DBAPIError, match=r"(?i)read[- ]only"),
        ):
            reader._connection.execute(write)
    assert content_of(database) == one_by_one(client)


def content_of(database: Database) -> object:
    with closing(opened(database.url)) as reader:
        return content(read_placement(reader))


@contextmanager
def user_of(database: Database, granted: str) -> Iterator[sa.URL]:
    """Make a user with a right; yield the URL of the database for the user."""
    is_maria = database.engine.dialect.name == "mysql"
    host = "@'127.0.0.1'" if is_maria else ""
    password = f"IDENTIFIED BY '{PASSWORD}'" if is_maria else f"PASSWORD '{PASSWORD}'"
    with database.engine.begin() as connection:
        connection.exec_driver_sql(f"CREATE USER {USER}{host} {password}")
        connection.exec_driver_sql(f"GRANT SELECT ON {granted} TO {USER}{host}")
    try:
        yield database.engine.url.set(username=USER, password=PASSWORD)
    finally:
        with database.engine.begin() as connection:
            if not is_maria:
                connection.exec_driver_sql(f"DROP OWNED BY {USER}")
            connection.exec_driver_sql(f"DROP USER {USER}{host}")


def test_a_user_that_may_only_select(database: Database, client: PlacementClient) -> None:
    is_maria = database.engine.dialect.name == "mysql"
    everything = "placement.*" if is_maria else "ALL TABLES IN SCHEMA public"
    with user_of(database, everything) as url, closing(opened(url)) as reader:
        assert content(read_placement(reader)) == one_by_one(client)
    with (
        user_of(database, "alembic_version") as url,
        closing(opened(url)) as reader,
        pytest.raises(DatabaseUnavailable, match="needs the right to SELECT") as refused,
    ):
        read_placement(reader)
    assert "denied" in str(refused.value)
    assert PASSWORD not in str(refused.value)
