"""The flavors in Nova's databases: in the API database, and embedded in the servers of a cell v2.

The queries name the few columns that are needed, and read pages of rows. Nova's objects are not
used: an upgrade check also reads the data of the release before the upgrade, and 10,000 of Nova's
instances would take long to load.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from nova import context
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor

PAGE = 1000
"""The number of rows in a page."""

_IMAGE = "image_"
"""The prefix of image properties in Nova's instance_system_metadata."""

_COLUMNS = ("name", "vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")

Properties = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """A server with its embedded flavor, as the database has them.

    :param node: the compute node, which is the name of the root provider; empty for a server that
        is on no host.
    :param flavor: the JSON text of Nova's embedded flavors.
    :param properties: the properties ``hw_…`` of the image of the server, sorted.
    """

    uuid: str
    name: str
    node: str
    flavor: str
    properties: Properties


def server_pages(cell: Any) -> Iterator[Sequence[StoredServer]]:
    """Yield the servers of a cell v2, page by page, without deleted servers.

    :param cell: a request context that reaches the database of the cell.
    """
    last = 0
    while True:
        with main_db.get_context_manager(cell).reader.using(cell) as session:
            rows = session.execute(_servers_after(last)).all()
            properties = _properties(session, [row.uuid for row in rows])
        if not rows:
            return
        yield [
            StoredServer(
                uuid=row.uuid,
                name=row.display_name or "",
                node=row.node or "",
                flavor=row.flavor or "",
                properties=tuple(sorted(properties.get(row.uuid, ()))),
            )
            for row in rows
        ]
        last = rows[-1].id


def _servers_after(last: int) -> Any:
    server, extra = models.Instance, models.InstanceExtra
    # An outer join, so that a server without an embedded flavor is not overlooked.
    extra_of_server = sa.and_(extra.instance_uuid == server.uuid, extra.deleted == 0)
    columns = (server.id, server.uuid, server.display_name, server.node, extra.flavor)
    return (
        sa.select(*columns)
        .outerjoin(extra, extra_of_server)
        .where(server.deleted == 0, server.id > last)
        .order_by(server.id)
        .limit(PAGE)
    )


def _properties(session: Any, uuids: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    metadata = models.InstanceSystemMetadata
    rows = session.execute(
        sa.select(metadata.instance_uuid, metadata.key, metadata.value).where(
            metadata.instance_uuid.in_(uuids),
            metadata.deleted == 0,
            metadata.key.startswith(f"{_IMAGE}hw_", autoescape=True),
        )
    )
    properties: dict[str, list[tuple[str, str]]] = {}
    for uuid, key, value in rows:
        properties.setdefault(uuid, []).append((key.removeprefix(_IMAGE), value or ""))
    return properties


def flavor_pages() -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the flavors of the API database, page by page, for :func:`to_flavor`."""
    flavor, admin, last = api_models.Flavors, context.get_admin_context(), 0
    columns = [getattr(flavor, name) for name in _COLUMNS]
    while True:
        page = sa.select(flavor.id, *columns).where(flavor.id > last)
        with api_db.context_manager.reader.using(admin) as session:
            rows = session.execute(page.order_by(flavor.id).limit(PAGE)).all()
            extra_specs = _extra_specs(session, [row.id for row in rows])
        if not rows:
            return
        yield [{**row._mapping, "extra_specs": extra_specs.get(row.id)} for row in rows]
        last = rows[-1].id


def _extra_specs(session: Any, flavors: Sequence[int]) -> dict[int, dict[str, str]]:
    specs = api_models.FlavorExtraSpecs
    rows = session.execute(
        sa.select(specs.flavor_id, specs.key, specs.value).where(specs.flavor_id.in_(flavors))
    )
    extra_specs: dict[int, dict[str, str]] = {}
    for flavor, key, value in rows:
        extra_specs.setdefault(flavor, {})[key] = value or ""
    return extra_specs


def embedded_flavor(text: str) -> Flavor:
    """Return the present flavor in the JSON text of Nova's embedded flavors.

    :raises InvalidInput: the text is not of Nova, or a size is out of range.
    """
    try:
        return to_flavor(json.loads(text)["cur"]["nova_object.data"])
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidInput.of(
            "embedded flavor",
            f"Nova's database has {text[:40]!r} ({type(error).__name__})",
            "resize the server",
        ) from error


def to_flavor(data: Mapping[str, Any]) -> Flavor:
    """Return the flavor in the fields of Nova's flavor.

    :raises InvalidInput: a size is out of range.
    """
    *names, swap = _COLUMNS
    sizes = {name: data[name] for name in names}
    return Flavor(**sizes, swap_mb=data[swap], extra_specs=data.get("extra_specs") or {})
