"""The servers of a snapshot as keys of its JSON document; equal flavors and images stand once.

Pure. A document of version 2 has no hosts, zones, hints, images, migrations and aggregates: these
are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    UNREAD,
    ServerGroup,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)

SERVERS = (
    *("servers", "server_flavors", "server_images", "groups", "migrations", "host_aggregates"),
    *("services", "down", "types", "unread"),
)
"""The keys of a snapshot for servers."""

_SERVER = (
    *("name", "flavor", "state", "task", "locked", "lock_reason", "stays", "host", "project"),
    *("zone", "hints", "image", "volume", "unread"),
)
_GROUP = ("name", "policy", "most", "members")
_MIGRATION = ("server", "kind", "status", "source", "target")
_AGGREGATE = ("name", "zone", "hosts", "metadata")
_IMAGE = ("name", "properties")

_Value = TypeVar("_Value")


class _Numbered:
    """Values that stand once in a list of the document; servers have their numbers."""

    def __init__(self, to_json: Callable[[Any], object]) -> None:
        self._to_json = to_json
        self._numbers: dict[str, int] = {}
        self.bodies: list[object] = []

    def number(self, value: object) -> int | None:
        if value is None:
            return None
        key = repr(value)  # a flavor has a dict, which has no hash
        if key not in self._numbers:
            self._numbers[key] = len(self.bodies)
            self.bodies.append(self._to_json(value))
        return self._numbers[key]


def servers_json(
    servers: SnapshotServers, flavor_json: Callable[[Flavor], object]
) -> dict[str, object]:
    """Return the keys of the document, without empty values of servers."""
    flavors, images = _Numbered(flavor_json), _Numbered(_image_json)
    return {
        "servers": {
            uuid: _server_json(server, flavors, images) for uuid, server in servers.servers.items()
        },
        "server_flavors": flavors.bodies,
        "server_images": images.bodies,
        "groups": {
            uuid: {"name": g.name, "policy": g.policy, "most": g.most, "members": list(g.members)}
            for uuid, g in servers.groups.items()
        },
        "migrations": {
            uuid: {key: getattr(migration, key) for key in _MIGRATION}
            for uuid, migration in servers.migrations.items()
        },
        "host_aggregates": {
            uuid: {
                "name": a.name,
                "zone": a.zone,
                "hosts": [*a.hosts],
                "metadata": dict(a.metadata),
            }
            for uuid, a in servers.aggregates.items()
        },
        "services": dict(servers.services),
        "down": list(servers.down),
        "types": dict(servers.types),
        "unread": sorted(servers.unread),
    }


def _server_json(server: SnapshotServer, flavors: _Numbered, images: _Numbered) -> object:
    always = {
        "name": server.name,
        "flavor": flavors.number(server.flavor),
        "state": server.state,
    }
    further = {
        "task": server.task,
        "locked": server.is_locked,
        "lock_reason": server.lock_reason,
        "stays": server.stays,
        "host": server.host,
        "project": server.project,
        "zone": server.zone,
        "hints": {name: list(values) for name, values in server.hints.items()},
        "volume": server.is_from_volume,
        "unread": sorted(server.unread),
    }
    image = {} if server.image is None else {"image": images.number(server.image)}
    return {**always, **{key: value for key, value in further.items() if value}, **image}


def _image_json(image: Image) -> object:
    return {"name": image.name, "properties": dict(image.properties)}


def read_servers(
    at: DocumentPlace, document: Mapping[str, Any], flavors: Sequence[Flavor]
) -> SnapshotServers:
    """Return the servers of a document, which are missing in version 1.

    :param flavors: what ``server_flavors`` has.
    """
    images = _each_of(at / "server_images", at.get(document, "server_images", list), _image)
    return SnapshotServers(
        servers={
            uuid: _server(at / "servers" / uuid, body, flavors, images)
            for uuid, body in at.get(document, "servers", dict).items()
        },
        groups=_all(at, document, "groups", _group),
        migrations=_all(at, document, "migrations", _migration),
        aggregates=_all(at, document, "host_aggregates", _aggregate),
        services=_texts_by_key(at / "services", at.get(document, "services", dict)),
        down=_texts(at, document, "down"),
        types=_texts_by_key(at / "types", at.get(document, "types", dict)),
        unread=frozenset(UNREAD) if document["version"] == 2 else _unread(at, document),
    )


def _all(
    at: DocumentPlace,
    document: Mapping[str, Any],
    key: str,
    read: Callable[[DocumentPlace, Any], _Value],
) -> dict[str, _Value]:
    bodies = at.get(document, key, dict)
    return {uuid: read(at / key / uuid, body) for uuid, body in bodies.items()}


def _each_of(
    at: DocumentPlace, bodies: Iterable[object], read: Callable[[DocumentPlace, Any], _Value]
) -> list[_Value]:
    return [read(at / number, body) for number, body in enumerate(bodies)]


def _server(
    at: DocumentPlace, body: object, flavors: Sequence[Flavor], images: Sequence[Image]
) -> SnapshotServer:
    server = at.of(body, dict)
    at.check_keys(server, _SERVER)
    hints = at.get(server, "hints", dict)
    return SnapshotServer(
        name=at.get(server, "name", str),
        flavor=_numbered(at, server, "flavor", flavors),
        state=at.get(server, "state", str),
        task=at.get(server, "task", str),
        is_locked=_flag(at, server, "locked"),
        lock_reason=at.get(server, "lock_reason", str),
        stays=at.get(server, "stays", str),
        host=at.get(server, "host", str),
        project=at.get(server, "project", str),
        zone=at.get(server, "zone", str),
        hints={name: _texts(at / "hints", hints, name) for name in hints},
        image=_numbered(at, server, "image", images),
        is_from_volume=_flag(at, server, "volume"),
        unread=_unread(at, server),
    )


def _numbered(
    at: DocumentPlace, body: Mapping[str, Any], key: str, values: Sequence[_Value]
) -> _Value | None:
    number = body.get(key)
    if number is None:
        return None
    if type(number) is int and 0 <= number < len(values):
        return values[number]
    (at / key).wrong(number, f"give the number of one of server_{key}s, from 0")
    return None


def _flag(at: DocumentPlace, body: Mapping[str, Any], key: str) -> bool:
    value = body.get(key, False)
    if not isinstance(value, bool):
        (at / key).wrong(value, "give true or false")
    return value is True


def _unread(at: DocumentPlace, body: Mapping[str, Any]) -> frozenset[str]:
    names = _texts(at, body, "unread")
    for name in names:
        if name not in UNREAD:
            (at / "unread").wrong(name, f"cpu-tiers knows {', '.join(UNREAD)} here")
    return frozenset(names).intersection(UNREAD)


def _texts(at: DocumentPlace, body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = at.get(body, key, list)
    return tuple(dict.fromkeys((at / key).of(value, str) for value in values))


def _texts_by_key(at: DocumentPlace, body: Mapping[str, Any]) -> Mapping[str, str]:
    return {key: (at / key).of(value, str) for key, value in body.items()}


def _group(at: DocumentPlace, body: object) -> ServerGroup:
    group = at.of(body, dict)
    at.check_keys(group, _GROUP)
    return ServerGroup(
        name=at.get(group, "name", str),
        policy=at.get(group, "policy", str),
        most=(at / "most").amount(group.get("most", 1), 1),
        members=_texts(at, group, "members"),
    )


def _migration(at: DocumentPlace, body: object) -> ServerMigration:
    migration = at.of(body, dict)
    at.check_keys(migration, _MIGRATION)
    return ServerMigration(**{key: at.get(migration, key, str) for key in _MIGRATION})


def _aggregate(at: DocumentPlace, body: object) -> SnapshotAggregate:
    aggregate = at.of(body, dict)
    at.check_keys(aggregate, _AGGREGATE)
    return SnapshotAggregate(
        name=at.get(aggregate, "name", str),
        zone=at.get(aggregate, "zone", str),
        hosts=_texts(at, aggregate, "hosts"),
        metadata=_texts_by_key(at / "metadata", at.get(aggregate, "metadata", dict)),
    )


def _image(at: DocumentPlace, body: object) -> Image:
    image = at.of(body, dict)
    at.check_keys(image, _IMAGE)
    properties = at.get(image, "properties", dict)
    return Image(at.get(image, "name", str), _texts_by_key(at / "properties", properties))
