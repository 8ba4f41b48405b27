"""The flavors in Nova's databases: in the API database, and embedded in the servers of a cell v2.

The queries name the few columns that are needed, and read pages of rows. Nova's objects are not
used: an upgrade check also reads the data of the release before the upgrade, and 10,000 of Nova's
instances would take long to load. ``nova-manage db archive_deleted_rows`` moves the rows of
deleted servers to the shadow tables, until ``nova-manage db purge``.

Nova embeds the flavor in a server when the server is made or resized. A corrected flavor therefore
helps only new servers, and the findings name the servers with a flavor that breaks rules.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, TypeVar

import sqlalchemy as sa
from nova import context, objects
from nova.context import RequestContext
from nova.db.api import api as api_db
from nova.db.api import models as api_models
from nova.db.main import api as main_db
from nova.db.main import models
from sqlalchemy.orm import Session

from cpu_tiers.errors import FaultList, InvalidInput
from cpu_tiers.in_time import in_time
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.nova.cloud import CONF, NovaUnavailable, asking, configure, reason_of
from cpu_tiers.tools.simulation.requests import PastServer
from cpu_tiers.tools.tiers.flavor_advice import sells_nodes
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import FlavorFinding, Inspection, Read, broken_rules

PAGE = 1000
"""The number of rows in a page."""

_IMAGE = "image_"
"""The prefix of image properties in Nova's instance_system_metadata."""

_COLUMNS = ("name", "vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")

SHADOW = "shadow_"
"""The beginning of the names of Nova's tables for archived rows."""

Tell = Callable[[str], None]
"""Takes a line about the progress of a long read."""

_Item = TypeVar("_Item")
_END = object()

Properties = tuple[tuple[str, str], ...]
Rows = Sequence[sa.Row[Any]]
_Reader = Callable[[], AbstractContextManager[Session]]
_Details = TypeVar("_Details")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServer:
    """A server with its embedded flavor, as the database has them.

    :param node: the compute node; empty for a server that is on no host.
    :param flavor: the JSON text of Nova's embedded flavors.
    :param properties: the properties ``hw_…`` of the image of the server, sorted.
    """

    uuid: str
    name: str
    node: str
    flavor: str
    properties: Properties


def server_pages(cell: RequestContext) -> Iterator[Sequence[StoredServer]]:
    """Yield the servers of a cell v2, page by page, without deleted servers."""
    server, extra = models.Instance, models.InstanceExtra
    # An outer join, so that a server without an embedded flavor is not overlooked.
    extra_of_server = sa.and_(extra.instance_uuid == server.uuid, extra.deleted == 0)
    columns = (server.id, server.uuid, server.display_name, server.node, extra.flavor)
    query = sa.select(*columns).outerjoin(extra, extra_of_server).where(server.deleted == 0)
    for rows, properties in _pages(_reader(cell), query, server.id, _properties):
        yield [
            StoredServer(
                uuid=row.uuid,
                name=row.display_name or "",
                node=row.node or "",
                flavor=row.flavor or "",
                properties=tuple(sorted(properties.get(row.uuid, {}).items())),
            )
            for row in rows
        ]


def _reader(cell: RequestContext) -> _Reader:
    return partial(main_db.get_context_manager(cell).reader.using, cell)


def _pages(
    reader: _Reader,
    query: sa.Select[Any],
    identity: sa.ColumnElement[int],
    details: Callable[[Session, Rows], _Details],
) -> Iterator[tuple[Rows, _Details]]:
    """Yield pages of rows in the order of their ids, with details of the same transaction."""
    last = 0
    while True:
        with reader() as session:
            page = query.where(identity > last).order_by(identity).limit(PAGE)
            rows = session.execute(page).all()
            if not rows:
                return
            further = details(session, rows)
        yield rows, further
        last = rows[-1].id


def _properties(session: Session, servers: Rows) -> dict[Any, dict[str, str]]:
    metadata = models.InstanceSystemMetadata
    query = sa.select(metadata.instance_uuid, metadata.key, metadata.value).where(
        metadata.instance_uuid.in_([server.uuid for server in servers]),
        metadata.deleted == 0,
        metadata.key.startswith(f"{_IMAGE}hw_", autoescape=True),
    )
    return _by_owner(session, query, _IMAGE)


def _by_owner(
    session: Session, query: sa.Select[Any], prefix: str = ""
) -> dict[Any, dict[str, str]]:
    values: dict[Any, dict[str, str]] = {}
    for owner, key, value in session.execute(query):
        values.setdefault(owner, {})[key.removeprefix(prefix)] = value or ""
    return values


def flavor_pages() -> Iterator[Sequence[Mapping[str, Any]]]:
    """Yield the flavors of the API database, page by page, for :func:`to_flavor`."""
    flavor = api_models.Flavors
    query = sa.select(flavor.id, *(getattr(flavor, name) for name in _COLUMNS))
    reader = partial(api_db.context_manager.reader.using, context.get_admin_context())
    for rows, extra_specs in _pages(reader, query, flavor.id, _extra_specs):
        yield [{**row._mapping, "extra_specs": extra_specs.get(row.id)} for row in rows]


def _extra_specs(session: Session, flavors: Rows) -> dict[Any, dict[str, str]]:
    specs, ids = api_models.FlavorExtraSpecs, [flavor.id for flavor in flavors]
    query = sa.select(specs.flavor_id, specs.key, specs.value).where(specs.flavor_id.in_(ids))
    return _by_owner(session, query)


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


def past_servers(cell: RequestContext, faults: FaultList) -> Iterator[PastServer]:
    """Yield the existing, the deleted and the archived servers of a cell v2, with the last flavor.

    The flavor of a server from a volume has no root disk, which no host gives.

    :param faults: collects the faults of embedded flavors; such servers are left out.
    """
    read = lru_cache(maxsize=10_000)(embedded_flavor)  # most texts are equal to others
    for prefix in ("", SHADOW):
        server, extra = _table(models.Instance, prefix), _table(models.InstanceExtra, prefix)
        times = (server.c.created_at, server.c.terminated_at, server.c.deleted_at)
        query = (
            sa.select(server.c.id, *times, server.c.image_ref, extra.c.flavor)
            .outerjoin_from(server, extra, extra.c.instance_uuid == server.c.uuid)
            # A server that never got a host has no row with a time of its launch.
            .where(server.c.created_at.is_not(None), server.c.launched_at.is_not(None))
        )
        for rows, _ in _pages(_reader(cell), query, server.c.id, lambda *_: None):
            for row in rows:
                if flavor := faults.read(read, row.flavor or ""):
                    ended = row.terminated_at or row.deleted_at
                    if not row.image_ref:  # the root disk is a volume
                        flavor = flavor._replace(root_gb=0)
                    yield PastServer(created=row.created_at, ended=ended, flavor=flavor)


def _table(model: Any, prefix: str) -> sa.Table:
    table: sa.Table = model.__table__
    return table.to_metadata(sa.MetaData(), name=f"{prefix}{table.name}") if prefix else table


Servers = dict[tuple[str, Properties], list[StoredServer]]
"""Servers by the text of the embedded flavor and the properties of the image."""


@contextmanager
def databases(files: Sequence[str], folders: Sequence[str] = ()) -> Iterator[None]:
    """Connect to Nova's databases.

    :param files, folders: as :func:`~cpu_tiers.tools.nova.cloud.configure`.
    :raises NovaUnavailable: at once, or later within the ``with`` block.
    """
    with asking():
        configure(files, folders)
        if not CONF.api_database.connection:
            raise NovaUnavailable(
                "Nova cannot be asked: [api_database] connection is not set; run the command"
                " where nova.conf has the option, as nova-conductor's nova.conf does"
            )
        yield


def inspect_flavors(tell: Tell) -> Inspection:
    """Return an inspection of the flavors in the API database.

    :raises SQLAlchemyError, DBError: the database does not answer.
    """
    count, findings, selling_nodes = 0, [], list[str]()
    for page in flavor_pages():
        count += len(page)
        selling_nodes += [name for data in page if (name := _name_if_selling_nodes(data))]
        findings += [finding for data in page for finding in _finding(partial(_request, data))]
        tell(f"{count} flavors read")
    return Inspection(
        count=count, findings=tuple(findings), selling_nodes=tuple(sorted(selling_nodes))
    )


def inspect_cells(tell: Tell) -> Iterator[Inspection]:
    """Yield an inspection of the servers of each cell v2.

    A cell without an answer is named, and the next cells are read. cell0 is left out: its servers
    have never been on a host. Without an answer of the API database, as :func:`inspect_flavors`.
    """
    admin = context.get_admin_context()
    for cell in objects.CellMappingList.get_all(admin):
        if not cell.is_cell0():
            servers: Servers = {}
            error = _read_cell(cell, servers, tell)
            count, findings = sum(map(len, servers.values())), tuple(_findings(servers))
            yield Inspection(count=count, findings=findings, error=error, pinned=_pinned(servers))


def _read_cell(cell: objects.CellMapping, servers: Servers, tell: Tell) -> str | None:
    name = f"cell {cell.name or ''} ({cell.uuid})"
    count = 0
    try:
        with context.target_cell(context.get_admin_context(), cell) as cell_context:
            pages = server_pages(cell_context)
            for page in each_in_time(pages, context.CELL_TIMEOUT, lambda: tell(f"{name}: …")):
                for server in page:
                    servers.setdefault((server.flavor, server.properties), []).append(server)
                count += len(page)
                tell(f"{name}: {count} servers read")
    except Exception as error:  # any driver of a database, with errors of its own
        return f"{name} does not answer: {reason_of(error)}"
    return None


def each_in_time(
    items: Iterable[_Item], seconds: float, waiting: Callable[[], None]
) -> Iterator[_Item]:
    """Yield items, each of which must come within some seconds after it was asked for.

    :param waiting: is called every two seconds until an item comes.
    :raises TimeoutError: the next item did not come in time.
    """
    source = iter(items)
    while (item := in_time(lambda: next(source, _END), seconds, waiting)) is not _END:
        yield item  # type: ignore[misc]  # mypy does not narrow by a sentinel


def _findings(servers: Servers) -> Iterator[FlavorFinding]:
    for (text, properties), equal_servers in servers.items():
        names = tuple(f"{server.name} ({server.uuid})" for server in equal_servers)
        yield from _finding(partial(_embedded_request, text, properties), names)


def _pinned(servers: Servers) -> Counter[str]:
    """Return the number of servers with only dedicated vCPUs, by compute node."""
    pinned: Counter[str] = Counter()
    for (text, properties), equal_servers in servers.items():
        with suppress(InvalidInput):
            if _embedded_request(text, properties).guest.policy == "dedicated":
                pinned.update(server.node for server in equal_servers if server.node)
    return pinned


def _finding(read: Read, servers: tuple[str, ...] = ()) -> Iterator[FlavorFinding]:
    if rules := broken_rules(read):
        yield FlavorFinding(rules=rules, servers=servers)


def _name_if_selling_nodes(data: Mapping[str, Any]) -> str:
    """Return the name of a flavor with a tier whose servers stand on NUMA nodes, else no text."""
    with suppress(InvalidInput):  # a finding
        flavor = to_flavor(data)
        return flavor.name if sells_nodes(flavor) else ""
    return ""


def _request(data: Mapping[str, Any]) -> ServerRequest:
    return ServerRequest(to_flavor(data))


def _embedded_request(text: str, properties: Properties) -> ServerRequest:
    image = Image(name="of the server", properties=dict(properties)) if properties else None
    return ServerRequest(embedded_flavor(text), image)
