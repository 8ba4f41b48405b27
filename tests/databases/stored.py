"""The rows in the database of a Placement, read and written by SQL beside Placement."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy

from tests.nova.placement_rows import PlacementRows, read_rows

_OVERSOLD = """
    SELECT p.name AS provider, c.name AS resource_class, SUM(a.used) AS used,
           FLOOR((MAX(i.total) - MAX(i.reserved)) * MAX(i.allocation_ratio)) AS capacity
    FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id
    JOIN resource_classes c ON c.id = a.resource_class_id
    LEFT JOIN inventories i ON i.resource_provider_id = a.resource_provider_id
    AND i.resource_class_id = a.resource_class_id
    GROUP BY p.name, c.name
    HAVING FLOOR((MAX(i.total) - MAX(i.reserved)) * MAX(i.allocation_ratio)) IS NULL
    OR SUM(a.used) > FLOOR((MAX(i.total) - MAX(i.reserved)) * MAX(i.allocation_ratio))"""
"""One statement, which sees one state of the database."""

_NAMES = "SELECT name FROM resource_classes UNION SELECT name FROM traits"

Tables = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Oversold:
    """More of a resource class is allocated than its capacity.

    :param capacity: ``None`` without an inventory.
    """

    provider: str
    resource_class: str
    used: int
    capacity: int | None

    def __str__(self) -> str:
        return f"{self.provider}: {self.used} of {self.capacity} {self.resource_class}"


class Database:
    """The database of a Placement."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.engine = sqlalchemy.create_engine(url)
        self._tables = sqlalchemy.MetaData()

    def select(self, query: str) -> list[Any]:
        """Return the rows of a SELECT statement."""
        with self.engine.connect() as connection:
            return list(connection.execute(sqlalchemy.text(query)))

    def oversold(self) -> list[Oversold]:
        """Return each provider with more allocations than capacity."""
        return [
            Oversold(provider, name, int(used), None if capacity is None else int(capacity))
            for provider, name, used, capacity in self.select(_OVERSOLD)
        ]

    def state(self) -> tuple[PlacementRows, frozenset[str]]:
        """Return the providers with all they have, and the names that Placement knows."""
        return read_rows(self.select), frozenset(name for (name,) in self.select(_NAMES))

    def save(self) -> Tables:
        """Return all rows of all tables."""
        self._tables.reflect(self.engine)
        with self.engine.connect() as connection:
            return {
                table.name: [dict(row) for row in connection.execute(table.select()).mappings()]
                for table in self._tables.sorted_tables
            }

    def restore(self, saved: Tables) -> None:
        """Write the rows of :meth:`save` into the tables that have other rows now.

        Tables that refer to such a table are written as well.
        """
        present = self.save()
        changed: list[sqlalchemy.Table] = []
        for table in self._tables.sorted_tables:
            refers = any(key.column.table in changed for key in table.foreign_keys)
            if refers or present[table.name] != saved[table.name]:
                changed.append(table)
        with self.engine.begin() as connection:
            for table in reversed(changed):
                to_itself = [k.parent.name for k in table.foreign_keys if k.column.table is table]
                if to_itself:  # MariaDB deletes no row to which another row refers
                    connection.execute(table.update().values(dict.fromkeys(to_itself)))
                connection.execute(table.delete())
            for table in changed:
                # A child stands behind its parent, which has the lower id.
                for row in sorted(saved[table.name], key=lambda row: row.get("id", 0)):
                    connection.execute(table.insert(), row)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()
