"""The resizes and cold migrations that nova-conductor has started, and that wait for a host."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from typing import Any

from nova import objects


def started_resize(cell: Any, server: str, kind: str = "resize") -> objects.Migration | None:
    """Return the migration of a server whose resize waits for a host; ``None`` without a resize.

    :param cell: a request context that reaches the database of the server's cell v2.
    :param server: the uuid of the server.
    :param kind: Nova's type of the migration; ``migration`` is a cold migration.
    """
    filters = {"instance_uuid": server, "migration_type": kind, "status": "pre-migrating"}
    migrations = objects.MigrationList.get_by_filters(cell, filters).objects
    return migrations[0] if migrations else None
