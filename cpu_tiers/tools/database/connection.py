"""Transactions that can only read, on the databases of Placement and Nova.

A transaction sees its database at one moment (``REPEATABLE READ``), and the database refuses every
statement that writes. The statements are SELECTs that SQLAlchemy makes of names in this folder.

Source: MariaDB, "START TRANSACTION"; PostgreSQL, "SET TRANSACTION"; SQLite, "PRAGMA query_only".
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, NamedTuple
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from cpu_tiers.errors import printable
from cpu_tiers.tools.compute_api import ComputeApiUnavailable

API = "leave out --databases to ask the API"

_SECONDS = 10
"""A database has so many seconds to accept a connection."""

_ROWS = 5000
"""So many rows are taken at a time."""

_TEXT = 1 << 20
"""So many bytes has a text of several rows in MySQL, which else cuts it after 1024."""

_ISOLATED = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
_BEGIN = {
    "mysql": (
        f"SET SESSION group_concat_max_len = {_TEXT}",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ),
    "sqlite": ("PRAGMA query_only = ON", "BEGIN"),
}
"""What begins the transaction where SQLAlchemy has no option for it."""

_VERSION = sa.table("alembic_version", sa.column("version_num"))


class DatabaseUnavailable(ComputeApiUnavailable):
    """A database does not answer, refuses, or has tables of an unknown release."""


class Schema(NamedTuple):
    """The tables that the migrations of a service make.

    :param service: the service, for messages, such as ``Placement``.
    :param releases: the releases of the service that have these tables.
    :param revisions: the last migrations of these releases.
    """

    service: str
    releases: str
    revisions: frozenset[str]


def table(name: str, *columns: str) -> sa.TableClause:
    """Return a table with the columns that are read."""
    return sa.table(name, *map(sa.column, columns))


class Reader:
    """A transaction on a database, which begins at once.

    :param url: the address as SQLAlchemy takes it, with the password.
    :param name: the name of the database for messages.
    :raises DatabaseUnavailable: also in each method.
    """

    def __init__(self, url: str | sa.URL, schema: Schema, name: str) -> None:
        self._schema, self._name = schema, name
        try:
            self._connection = _connected(sa.make_url(url))
        except ImportError as error:  # the library of the dialect
            raise DatabaseUnavailable(
                f"{name}: its URL needs the Python library {error.name}; install the library"
            ) from error
        except (ArgumentError, NoSuchModuleError, ValueError) as error:
            raise DatabaseUnavailable(  # the text of the error may be the URL
                f"{name}: its URL is none of SQLAlchemy; give the URL of the service's own"
                " configuration file"
            ) from error
        except (SQLAlchemyError, OSError) as error:
            raise DatabaseUnavailable(
                f"{name} does not answer: {_reason(error)}; check its URL, or {API}"
            ) from error
        try:
            found = {version for (version,) in self.rows(sa.select(_VERSION))}
            if not found <= schema.revisions or not found:
                raise DatabaseUnavailable(
                    f"{name} has the migration {', '.join(sorted(found)) or 'of no release'}, and"
                    f" cpu-tiers knows those of {schema.releases}; {API}"
                )
        except BaseException:
            self.close()
            raise

    @property
    def _dialect(self) -> sa.Dialect:
        return self._connection.dialect

    def rows(
        self, query: sa.Select[Any] | sa.TextClause, *, are_large: bool = False
    ) -> Iterator[Any]:
        """Yield the rows of a query, tuples; they are read before the next query begins.

        :param are_large: keep only a part of the rows in memory at a time, which takes longer.
        """
        options = {"stream_results": are_large}
        try:
            with closing(self._connection.execute(query, execution_options=options)) as result:
                for part in result.partitions(_ROWS):  # row by row, it takes twice as long
                    yield from part
        except (SQLAlchemyError, OSError) as error:
            raise self._unreadable(_reason(error)) from error

    def joined(self, numbers: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
        """Return the numbers of a group of rows as a column of texts, such as ``3,17``."""
        # The other databases convert numbers by themselves, in less time than by a cast.
        as_text = sa.cast if self._dialect.name == "postgresql" else sa.type_coerce
        return sa.func.aggregate_strings(as_text(numbers, sa.String), ",")

    def joined_rows(self, query: sa.Select[Any]) -> list[Any]:
        """Return the rows of a query with a column of :meth:`joined`, none of which is cut."""
        rows = list(self.rows(query))
        if self._dialect.name in ("mysql", "mariadb"):  # as its URL calls MariaDB
            ((warnings,),) = self.rows(sa.text("SELECT @@warning_count"))
            if warnings:
                raise self._unreadable("it cut a text of several rows")
        return rows

    def _unreadable(self, reason: str) -> DatabaseUnavailable:
        return DatabaseUnavailable(
            f"{self._name} cannot be read: {reason}; cpu-tiers knows the tables of"
            f" {self._schema.releases}, and needs the right to SELECT from them; {API}"
        )

    def close(self) -> None:
        """End the transaction and the connection."""
        with suppress(SQLAlchemyError, OSError):
            self._connection.close()
        self._connection.engine.dispose()


def _connected(url: sa.URL) -> sa.Connection:
    dialect = url.get_backend_name().replace("mariadb", "mysql")
    seconds = {} if dialect == "sqlite" else {"connect_timeout": _SECONDS}
    if dialect == "sqlite" and url.database:  # else a file that is missing would be made
        url = url.set(database=f"file:{quote(url.database)}", query={"mode": "ro", "uri": "true"})
    engine = sa.create_engine(url, poolclass=NullPool, connect_args=seconds)
    options = _ISOLATED if dialect != "sqlite" else {}
    connection = engine.connect().execution_options(**options)
    try:
        for statement in _BEGIN.get(dialect, ()):
            connection.exec_driver_sql(statement)
    except BaseException:
        connection.close()
        raise
    return connection


def _reason(error: Exception) -> str:
    """Return the first line of what a driver says, without the statement and its data."""
    cause = getattr(error, "orig", None) or error
    texts = [part for part in cause.args if isinstance(part, str)] or [type(cause).__name__]
    return printable(texts[-1].strip().splitlines()[0])
