"""The flavors of a cloud that break rules of cpu-tiers, and the servers with such flavors.

Nova embeds the flavor in a server when the server is made or resized. A corrected flavor therefore
helps only new servers.
"""

from __future__ import annotations  # Nova fills `objects` when a service starts

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from nova import context, objects

from cpu_tiers.errors import InvalidInput
from cpu_tiers.in_time import in_time
from cpu_tiers.model.flavor import Image
from cpu_tiers.tools.nova.cloud import CONF, NovaUnavailable, asking, configure, reason_of
from cpu_tiers.tools.nova.stored_flavors import (
    Properties,
    StoredServer,
    embedded_flavor,
    flavor_pages,
    server_pages,
    to_flavor,
)
from cpu_tiers.translators import ServerRequest
from cpu_tiers.translators.broken_rules import FlavorFinding, Inspection, Read, broken_rules

Tell = Callable[[str], None]
"""Takes a line about the progress of a long read."""

_Item = TypeVar("_Item")
_END = object()

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
    count, findings = 0, []
    for page in flavor_pages():
        count += len(page)
        reads = [partial(lambda data: ServerRequest(to_flavor(data)), data) for data in page]
        findings += [finding for read in reads for finding in _finding(read)]
        tell(f"{count} flavors read")
    return Inspection(count=count, findings=tuple(findings))


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
    for (text, properties), alike in servers.items():
        names = tuple(f"{server.name} ({server.uuid})" for server in alike)
        yield from _finding(partial(_embedded_request, text, properties), names)


def _pinned(servers: Servers) -> Counter[str]:
    """Return the number of servers with only dedicated vCPUs, by compute node."""
    pinned: Counter[str] = Counter()
    for (text, properties), alike in servers.items():
        with suppress(InvalidInput):
            if _embedded_request(text, properties).guest.policy == "dedicated":
                pinned.update(server.node for server in alike if server.node)
    return pinned


def _finding(read: Read, servers: tuple[str, ...] = ()) -> Iterator[FlavorFinding]:
    if rules := broken_rules(read):
        yield FlavorFinding(rules=rules, servers=servers)


def _embedded_request(text: str, properties: Properties) -> ServerRequest:
    image = Image(name="of the server", properties=dict(properties)) if properties else None
    return ServerRequest(embedded_flavor(text), image)
