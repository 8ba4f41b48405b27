"""What Nova's API says of a cloud, from Nova's databases: the API database, and that of each cell.

The documents have the form of Nova's API, as far as cpu-tiers reads it, so that one reader takes
both (:mod:`cpu_tiers.tools.frame.nova_servers`). A cell that does not answer is named, and of its
servers only the id and the project are known, as in the API.

Source: Nova, ``nova/db/{api,main}/models.py`` and ``nova/api/openstack/compute/views``.
"""

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import sqlalchemy as sa

from cpu_tiers.tools.cloud_model.service_states import SERVICE, ComputeService
from cpu_tiers.tools.compute_api import IN_PROGRESS, Document, HostAggregate
from cpu_tiers.tools.database.connection import DatabaseUnavailable, Reader, Schema, table
from cpu_tiers.tools.database.server_status import server_status

LOG = logging.getLogger(__name__)

RELEASES = "Nova 31 to 34"
API_SCHEMA = Schema("Nova", RELEASES, frozenset({"cdeec0c85668"}))
CELL_SCHEMA = Schema("Nova", RELEASES, frozenset({"2903cd72dc14", "ab450ba04102"}))
"""The latter migration, of Nova 34, adds indexes."""

_CELLS = table("cell_mappings", "id", "uuid", "name", "database_connection")
_HOSTS = table("host_mappings", "host", "cell_id")
_PLACES = table("instance_mappings", "instance_uuid", "project_id", "cell_id", "queued_for_delete")
_BUILDS = table("build_requests", "instance")
_REQUESTS = table("request_specs", "instance_uuid", "spec")
_GROUPS = table("instance_groups", "id", "uuid", "name")
_POLICIES = table("instance_group_policy", "group_id", "policy", "rules")
_MEMBERS = table("instance_group_member", "group_id", "instance_uuid")
_AGGREGATES = table("aggregates", "id", "uuid", "name")
_AGGREGATE_HOSTS = table("aggregate_hosts", "id", "aggregate_id", "host")
_METADATA = table("aggregate_metadata", "aggregate_id", "key", "value")
_SIZES = ("vcpus", "memory_mb", "root_gb", "ephemeral_gb", "swap")
_FLAVORS = table("flavors", "id", "flavorid", "name", *_SIZES)
_EXTRA_SPECS = table("flavor_extra_specs", "flavor_id", "key", "value")
_SERVICES = sa.table(
    "services",
    *map(sa.column, ("host", "binary", "disabled", "forced_down", "deleted")),
    sa.column("last_seen_up", sa.DateTime),
    sa.column("created_at", sa.DateTime),
)
_NODES = table("compute_nodes", "id", "uuid", "host", "hypervisor_hostname", "deleted")
_PLACED = ("uuid", "display_name", "project_id", "host", "node", "vm_state", "task_state")
_SERVERS = table("instances", *_PLACED, "image_ref", "locked_by", "hidden", "deleted")
_EXTRA = table("instance_extra", "instance_uuid", "flavor", "deleted")
_PROPERTIES = table("instance_system_metadata", "instance_uuid", "key", "value", "deleted")
_MIGRATION = ("uuid", "instance_uuid", "migration_type", "status", "source_node", "dest_node")
_MIGRATIONS = table("migrations", *_MIGRATION, "hidden", "deleted")

_CELL0 = "00000000-0000-0000-0000-000000000000"
"""The cell of servers without a host; it has no nova-compute."""

_IMAGE, _LOCK = "image_", "locked_reason"
_NO_PROPERTIES = ("min_ram", "min_disk", "disk_format", "container_format", "base_image_ref")
"""What Nova keeps of an image beside its properties."""
_LIKE_MOST = ('"availability_zone": null', '"scheduler_hints": {}')
"""What the request of most servers has: neither a zone nor hints."""

_SOFT_DELETED = "soft-delete"
_EPHEMERAL = "OS-FLV-EXT-DATA:ephemeral"

Open = Callable[[str, Schema, str], Reader]
"""Begins a transaction on the database of a URL; the last argument is its name for messages."""


class _Cell(NamedTuple):
    """A cell v2.

    :param reader: ``None`` if the database does not answer.
    """

    number: int
    uuid: str
    reader: Reader | None


class NovaDatabases:
    """The databases of Nova, of which each method reads what a request to Nova's API tells.

    All transactions begin with the object, so that the databases are read at nearly one moment.

    :param url: the API database.
    :param default: ``[database] connection``, of whose parts Nova makes the URLs of cells that
        are templates.
    :param down_after: the seconds after which a nova-compute that is not seen is down.
    :raises DatabaseUnavailable: the API database does not answer, also in each method.
    """

    def __init__(self, open_: Open, url: str, default: str, down_after: int) -> None:
        self._down_after = down_after
        self._api = open_(url, API_SCHEMA, "Nova's API database")
        self._cells = [self._cell(open_, default, *cell) for cell in self._listed(_CELLS)]

    def close(self) -> None:
        """End all transactions."""
        for reader in (self._api, *(cell.reader for cell in self._cells)):
            if reader:
                reader.close()

    def _listed(self, of: sa.TableClause) -> list[Any]:
        return list(self._api.rows(sa.select(of).order_by(of.c.id)))

    def _cell(
        self, open_: Open, default: str, number: int, uuid: str, name: str | None, url: str
    ) -> _Cell:
        name = f"the database of cell {name or uuid}"
        try:
            return _Cell(number, uuid, open_(_filled(url, default, name), CELL_SCHEMA, name))
        except DatabaseUnavailable as error:
            LOG.warning("The answer is without a cell, and its servers are on no host: %s", error)
            return _Cell(number, uuid, None)

    def compute_services(self) -> tuple[ComputeService, ...]:
        """Return the nova-compute services of all hosts that Nova has mapped to a cell."""
        mapped = set(self._api.rows(sa.select(_HOSTS)))
        services: list[ComputeService] = []
        now = datetime.now(UTC).replace(tzinfo=None)
        for cell in self._cells:
            if cell.reader is None or cell.uuid == _CELL0:
                continue
            of_hosts = {
                row.host: row
                for row in cell.reader.rows(
                    sa.select(_SERVICES).where(
                        _SERVICES.c.deleted == 0, _SERVICES.c.binary == SERVICE
                    )
                )
                if (row.host, cell.number) in mapped
            }
            nodes = sa.select(_NODES).where(_NODES.c.deleted == 0).order_by(_NODES.c.id)
            for node in cell.reader.rows(nodes):
                if service := of_hosts.get(node.host):
                    seen = service.last_seen_up or service.created_at
                    is_late = abs((now - seen).total_seconds()) > self._down_after
                    services.append(
                        ComputeService(
                            host=node.host,
                            is_up=not is_late and not service.forced_down,
                            is_enabled=not service.disabled,
                            nodes=(node.uuid, node.hypervisor_hostname),
                        )
                    )
        return tuple(services)

    def servers(self) -> Iterator[Document]:
        """Yield all servers."""
        requests = dict(self._requests())
        images, flavor = _Images(), cache(_flavor)
        of_server = sa.select(*list(_PROPERTIES.c)[:3]).where(
            _PROPERTIES.c.deleted == 0,
            sa.or_(_PROPERTIES.c.key.like(f"{_IMAGE}%"), _PROPERTIES.c.key == _LOCK),
            _PROPERTIES.c.key.not_in([f"{_IMAGE}{name}" for name in _NO_PROPERTIES]),
        )
        query = _living(
            _SERVERS.join(_EXTRA, _EXTRA.c.instance_uuid == _SERVERS.c.uuid, isouter=True)
        )
        building = set()
        for body in self._building():
            building.add(body["id"])
            yield body | _request(requests.get(body["id"]))
        for cell in self._cells:
            if cell.reader is None:
                yield from self._of_silent(cell)
                continue
            images.read(cell.reader.rows(of_server, are_large=True))
            for row in cell.reader.rows(query.add_columns(_EXTRA.c.flavor), are_large=True):
                if _is_listed(row) and row.uuid not in building:
                    yield {
                        **_placed(row),
                        **_request(requests.get(row.uuid)),
                        "flavor": flavor(row.flavor),
                        "locked": bool(row.locked_by),
                        **images.of(row.uuid, row.image_ref),
                    }

    def placed_servers(self) -> Iterator[Document]:
        """Yield all servers without flavors, images and requests."""
        yield from self._building()
        for cell in self._cells:
            if cell.reader is None:
                yield from self._of_silent(cell)
                continue
            for row in cell.reader.rows(_living(_SERVERS)):
                if _is_listed(row):
                    yield {**_placed(row), "image": {"id": row.image_ref} if row.image_ref else ""}

    def _building(self) -> Iterator[dict[str, Any]]:
        """Yield the servers that are in no cell yet."""
        for (text,) in self._api.rows(sa.select(_BUILDS)):
            data = _data(json.loads(text))
            flavor, image = data.get("flavor"), data.get("image_ref")
            metadata = data.get("system_metadata") or {}
            yield {
                "id": data["uuid"],
                "name": data.get("display_name"),
                "status": server_status(data.get("vm_state"), data.get("task_state")),
                "OS-EXT-STS:task_state": data.get("task_state"),
                "tenant_id": data.get("project_id"),
                "OS-EXT-SRV-ATTR:host": None,
                "OS-EXT-SRV-ATTR:hypervisor_hostname": None,
                "flavor": _body_of_flavor(_data(flavor)) if flavor else {},
                "image": {"id": image, "properties": _properties(metadata.items())}
                if image
                else "",
            }

    def _of_silent(self, cell: _Cell) -> Iterator[Document]:
        query = sa.select(_PLACES).where(_PLACES.c.cell_id == cell.number)
        for row in self._api.rows(query):
            if not row.queued_for_delete:
                yield {"id": row.instance_uuid, "status": "UNKNOWN", "tenant_id": row.project_id}

    def _requests(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the requests with a zone or with hints, by the server."""
        for uuid, text in self._api.rows(sa.select(_REQUESTS), are_large=True):
            if not all(
                text.count(part) == text.count(part.partition(" ")[0]) == 1 for part in _LIKE_MOST
            ):
                yield uuid, _data(json.loads(text))

    def migrations(self) -> Iterator[Document]:
        """Yield the migrations of :data:`~cpu_tiers.tools.compute_api.IN_PROGRESS`."""
        query = sa.select(_MIGRATIONS).where(
            _MIGRATIONS.c.deleted == 0, _MIGRATIONS.c.status.in_(IN_PROGRESS)
        )
        for cell in self._cells:
            for row in cell.reader.rows(query) if cell.reader else ():
                if not row.hidden:
                    yield {name: getattr(row, name) for name in _MIGRATION}

    def server_groups(self) -> Iterator[Document]:
        """Yield all server groups; the members may be servers that are deleted."""
        policies = {row.group_id: row for row in self._api.rows(sa.select(_POLICIES))}
        members = _by_number(self._api.rows(sa.select(_MEMBERS)))
        for number, uuid, name in self._listed(_GROUPS):
            policy = policies.get(number)
            rules = json.loads((policy and policy.rules) or "{}")  # their numbers are texts
            yield {
                "id": uuid,
                "name": name,
                "policy": policy and policy.policy,
                "rules": {rule: int(text) for rule, text in rules.items()},
                "members": [member for (member,) in members.get(number, ())],
            }

    def aggregates(self) -> list[HostAggregate]:
        """Return all host aggregates."""
        query = sa.select(_AGGREGATE_HOSTS.c.aggregate_id, _AGGREGATE_HOSTS.c.host)
        hosts = _by_number(self._api.rows(query.order_by(_AGGREGATE_HOSTS.c.id)))
        metadata = _by_number(self._api.rows(sa.select(_METADATA)))
        aggregates = []
        for number, uuid, name in self._listed(_AGGREGATES):
            texts = dict(metadata.get(number, ()))
            names = tuple(host for (host,) in hosts.get(number, ()))
            zone = texts.get("availability_zone")
            aggregates.append(HostAggregate(uuid, name, zone, names, texts))
        return aggregates

    def image_traits(self) -> None:
        """Return nothing: the properties of a server's image have the traits."""

    def flavors(self) -> Iterator[Document]:
        """Yield all flavors with their extra specs."""
        specs = _by_number(self._api.rows(sa.select(_EXTRA_SPECS)))
        query = sa.select(_FLAVORS).order_by(_FLAVORS.c.flavorid, _FLAVORS.c.id)
        for row in list(self._api.rows(query)):
            data = row._asdict() | {"extra_specs": dict(specs.get(row.id, ()))}
            body = _body_of_flavor(data)
            yield {**body, "id": row.flavorid, _EPHEMERAL: body.pop("ephemeral")}


def _filled(url: str, default: str, name: str) -> str:
    """Return the URL of a cell, whose template Nova fills with parts of another URL."""
    if "{" not in url:
        return url
    parts = urlsplit(default)
    try:
        return url.format(
            username=parts.username,
            password=parts.password,
            hostname=parts.hostname,
            port=parts.port,
            scheme=parts.scheme,
            query=parts.query,
            fragment=parts.fragment,
            path=parts.path.lstrip("/"),
        )
    except (LookupError, ValueError) as error:
        raise DatabaseUnavailable(
            f"{name}: the template of its URL is malformed; see nova-manage cell_v2 list_cells"
        ) from error


def _by_number(rows: Iterable[Any]) -> dict[int, list[tuple[Any, ...]]]:
    """Return the rest of each row by its first column."""
    numbers: dict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for number, *rest in rows:
        numbers[number].append(tuple(rest))
    return numbers


def _living(of: sa.FromClause) -> sa.Select[Any]:
    return sa.select(*_SERVERS.c).select_from(of).where(_SERVERS.c.deleted == 0)


def _is_listed(row: sa.Row[Any]) -> bool:
    """Tell whether Nova's API lists a server: not the copy of a server in its former cell."""
    return not row.hidden and row.vm_state != _SOFT_DELETED


def _placed(row: sa.Row[Any]) -> dict[str, Any]:
    return {
        "id": row.uuid,
        "name": row.display_name,
        "status": server_status(row.vm_state, row.task_state),
        "OS-EXT-STS:task_state": row.task_state,
        "tenant_id": row.project_id,
        "OS-EXT-SRV-ATTR:host": row.host,
        "OS-EXT-SRV-ATTR:hypervisor_hostname": row.node,
    }


def _request(request: Mapping[str, Any] | None) -> dict[str, Any]:
    data = request or {}
    return {
        "pinned_availability_zone": data.get("availability_zone"),
        "scheduler_hints": data.get("scheduler_hints"),
    }


def _data(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of an object of Nova as JSON."""
    data: Mapping[str, Any] = stored["nova_object.data"]
    return data


def _flavor(text: str | None) -> Document:
    """Return the flavor of a server; the texts of most servers are equal."""
    return _body_of_flavor(_data(json.loads(text)["cur"])) if text else {}


def _body_of_flavor(data: Mapping[str, Any]) -> dict[str, Any]:
    vcpus, memory_mb, root_gb, ephemeral_gb, swap = (data[name] for name in _SIZES)
    return {
        "name": data["name"],
        "vcpus": vcpus,
        "ram": memory_mb,
        "disk": root_gb,
        "ephemeral": ephemeral_gb,
        "swap": swap,
        "extra_specs": data.get("extra_specs") or {},
    }


def _properties(metadata: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Return the properties of an image by what Nova keeps beside the server."""
    return {
        key.removeprefix(_IMAGE): value
        for key, value in metadata
        if value is not None and key.startswith(_IMAGE)
    }


class _Images:
    """The properties of images, and the reasons of locks, of the servers of a cell."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[tuple[str, str], ...]] = {}
        self._properties = cache(lambda *metadata: _properties(metadata))

    def read(self, rows: Iterable[Any]) -> None:
        """Keep what Nova stores beside the servers of a cell; each pair is kept once."""
        pairs: dict[tuple[str, str], tuple[str, str]] = {}
        self._of.clear()
        for uuid, key, value in rows:
            pair = pairs.setdefault((key, value), (key, value))
            self._of[uuid] = (*self._of.get(uuid, ()), pair)

    def of(self, uuid: str, image: str | None) -> dict[str, Any]:
        """Return the image of a server, and the reason of its lock."""
        metadata = self._of.get(uuid, ())
        reason = next((value for key, value in metadata if key == _LOCK), None)
        if not image:
            return {"locked_reason": reason, "image": ""}
        return {
            "locked_reason": reason,
            "image": {"id": image, "properties": self._properties(*sorted(metadata))},
        }
