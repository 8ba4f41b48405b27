"""The servers that a cell v2 has had: when they came and went, and their flavors.

Source: Nova's database. Nova keeps the rows of deleted servers until ``nova-manage db
archive_deleted_rows`` moves them to the shadow tables, and ``nova-manage db purge`` deletes them.
Nova's objects are not used, for the reasons of :mod:`cpu_tiers.tools.nova.stored_flavors`.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from nova.db.main import api as main_db
from nova.db.main import models

from cpu_tiers.errors import FaultList
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.tools.nova.stored_flavors import PAGE, embedded_flavor
from cpu_tiers.tools.simulation.requests import PastServer

SHADOW = "shadow_"
"""The beginning of the names of Nova's tables for archived rows."""


def past_servers(cell: Any, faults: FaultList) -> Iterator[PastServer]:
    """Yield the servers of a cell v2 that exist, that are deleted, and that are archived.

    The flavor is the last flavor of the server.

    :param cell: a request context that reaches the database of the cell.
    :param faults: collects the faults of embedded flavors; such servers are left out.
    """
    read = lru_cache(maxsize=10_000)(
        embedded_flavor
    )  # servers of a flavor mostly have equal texts
    for prefix in ("", SHADOW):
        for row in _rows(cell, prefix):
            flavor: Flavor | None = None
            with faults:
                flavor = read(row.flavor or "")
            if flavor is not None:
                ended = row.terminated_at or row.deleted_at
                yield PastServer(created=row.created_at, ended=ended, flavor=flavor)


def _rows(cell: Any, prefix: str) -> Iterator[Any]:
    server, extra = _table(models.Instance, prefix), _table(models.InstanceExtra, prefix)
    query = (
        sa.select(
            server.c.id,
            server.c.created_at,
            server.c.terminated_at,
            server.c.deleted_at,
            extra.c.flavor,
        )
        .outerjoin_from(server, extra, extra.c.instance_uuid == server.c.uuid)
        # A server that never got a host has no row with a time of its launch.
        .where(server.c.created_at.is_not(None), server.c.launched_at.is_not(None))
        .order_by(server.c.id)
        .limit(PAGE)
    )
    last = 0
    while True:
        with main_db.get_context_manager(cell).reader.using(cell) as session:
            rows = session.execute(query.where(server.c.id > last)).all()
        if not rows:
            return
        yield from rows
        last = rows[-1].id


def _table(model: Any, prefix: str) -> sa.Table:
    table: sa.Table = model.__table__
    return table.to_metadata(sa.MetaData(), name=f"{prefix}{table.name}") if prefix else table
