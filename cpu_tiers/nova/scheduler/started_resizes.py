"""The resizes and cold migrations that nova-conductor has started, and that wait for a host."""

from __future__ import annotations  # objects.X stands there once Nova has registered it

from typing import Any

from nova import objects
from nova.context import target_cell


def started_resize(cell: Any, server: str, kind: str = "resize") -> objects.Migration | None:
    """Return the migration of a server whose resize waits for a host; ``None`` without a resize.

    :param cell: a request context that reaches the database of the server's cell v2.
    :param server: the uuid of the server.
    :param kind: Nova's type of the migration; ``migration`` is a cold migration.
    """
    filters = {"instance_uuid": server, "migration_type": kind, "status": "pre-migrating"}
    migrations = objects.MigrationList.get_by_filters(cell, filters).objects
    return migrations[0] if migrations else None


def migration_of(
    context: Any, spec_obj: objects.RequestSpec, server: str
) -> objects.Migration | None:
    """Return the migration of a server whose resize or cold migration waits for a host.

    ``None`` for every other request, without a read of the database if the request is a boot.

    :param context: a request context of an administrator.
    """
    # nova-conductor restricts every move to the cell of the server, and no boot.
    destination = spec_obj.requested_destination if "requested_destination" in spec_obj else None
    cell = destination.cell if destination and "cell" in destination else None
    if not cell:
        return None
    with target_cell(context, cell) as cell_context:
        return started_resize(cell_context, server) or started_resize(
            cell_context, server, "migration"
        )
