"""The servers of a snapshot as keys of its JSON document; equal flavors and images stand once.

Pure. A document of version 2 has no hosts, zones, hints, images, migrations and aggregates: these
are unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from typing import Any

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

_KINDS = {
    "servers": SnapshotServer,
    "groups": ServerGroup,
    "migrations": ServerMigration,
    "host_aggregates": SnapshotAggregate,
}
_LISTS = ("server_flavors", "server_images")
SERVERS = (*_KINDS, *_LISTS, "services", "down", "types", "unread")
"""The keys of a snapshot for servers."""

_KEYS = {"is_locked": "locked", "is_from_volume": "volume", "aggregates": "host_aggregates"}
"""The keys of attributes with another name."""
_NUMBERED = ("flavor", "image")
"""The attributes that stand once in a list of the document; a server has the number."""


def _key(attribute: str) -> str:
    return _KEYS.get(attribute, attribute)


def servers_json(
    servers: SnapshotServers, flavor_json: Callable[[Flavor], object]
) -> dict[str, object]:
    """Return the keys of the document, without attributes that have their default."""
    writer = _Writer(flavor_json)
    body = {
        _key(field.name): writer.plain(getattr(servers, field.name)) for field in fields(servers)
    }
    return body | {f"server_{name}s": bodies for name, bodies in writer.lists.items()}


class _Writer:
    """Makes JSON of values.

    :ivar lists: the bodies of flavors and images, of which each stands once.
    """

    def __init__(self, flavor_json: Callable[[Flavor], object]) -> None:
        self._flavor_json = flavor_json
        self._numbers: dict[str, int] = {}
        self.lists: dict[str, list[object]] = {name: [] for name in _NUMBERED}

    def plain(self, value: object) -> object:
        """Return a value as JSON has it, without attributes that have their default."""
        if isinstance(value, Flavor | Image):
            return self._number(value)
        if isinstance(value, Mapping):
            return {key: self.plain(each) for key, each in value.items()}
        if isinstance(value, frozenset):
            return sorted(value)
        if isinstance(value, tuple):
            return list(value)
        return value if isinstance(value, str | int | None) else self._attributes(value)

    def _attributes(self, value: object) -> dict[str, object]:
        return {
            _key(field.name): self.plain(each)
            for field in fields(value)  # type: ignore[arg-type]  # a value of _KINDS
            if (each := getattr(value, field.name)) != _default(field)
        }

    def _number(self, value: Flavor | Image) -> int:
        key = repr(value)  # a flavor has a dict, which has no hash
        if key not in self._numbers:
            bodies = self.lists["flavor" if isinstance(value, Flavor) else "image"]
            self._numbers[key] = len(bodies)
            bodies.append(
                self._flavor_json(value)
                if isinstance(value, Flavor)
                else {"name": value.name, "properties": dict(value.properties)}
            )
        return self._numbers[key]


def _default(field: Field[Any]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def read_servers(
    at: DocumentPlace, document: Mapping[str, Any], flavors: Sequence[Flavor]
) -> SnapshotServers:
    """Return the servers of a document, which are missing in version 1.

    :param flavors: what ``server_flavors`` has.
    """
    bodies = at.get(document, "server_images", list)
    images = [_image(at / "server_images" / n, body) for n, body in enumerate(bodies)]
    reader = _ValueReader({"flavor": flavors, "image": images})
    kinds = {
        key: reader.read(at / key, kind, at.get(document, key, dict))
        for key, kind in _KINDS.items()
    }
    return SnapshotServers(
        servers=kinds["servers"],
        groups=kinds["groups"],
        migrations=kinds["migrations"],
        aggregates=kinds["host_aggregates"],
        services=_texts_by_key(at, document, "services"),
        down=_texts(at, document, "down"),
        types=_texts_by_key(at, document, "types"),
        unread=frozenset(UNREAD) if document["version"] == 2 else _unread(at, document),
    )


class _ValueReader:
    """Reads values of a document: the default of an attribute says what the document may have.

    :param numbered: the values of the lists of the document, by the attribute.
    """

    def __init__(self, numbered: Mapping[str, Sequence[object]]) -> None:
        self._numbered = numbered

    def read(self, at: DocumentPlace, kind: type, bodies: Mapping[str, object]) -> dict[str, Any]:
        """Return the values of a kind of :data:`_KINDS` by their ids."""
        attributes = {_key(each.name): (each.name, _default(each)) for each in fields(kind)}
        return {
            name: kind(**self._attributes(at / name, body, attributes))
            for name, body in bodies.items()
        }

    def _attributes(
        self,
        at: DocumentPlace,
        body: object,
        attributes: Mapping[str, tuple[str, object]],
    ) -> dict[str, object]:
        """Return the attributes that a value has, and those without a default.

        :param attributes: name and default of each attribute by its key.
        """
        document = at.of(body, dict)
        if not document.keys() <= attributes.keys():
            at.check_keys(document, attributes)
        return {
            name: self._attribute(at, document, key, name, default)
            for key, (name, default) in attributes.items()
            if key in document or default is MISSING
        }

    def _attribute(
        self, at: DocumentPlace, document: Mapping[str, Any], key: str, name: str, default: object
    ) -> object:
        if default is MISSING or isinstance(default, str):
            return at.get(document, key, str)
        if name in self._numbered:
            return _numbered(at, document, key, self._numbered[name])
        if name == "hints":
            return _hints(at / key, at.get(document, key, dict))
        value = document[key]
        if isinstance(default, bool):
            if not isinstance(value, bool):
                (at / key).wrong(value, "give true or false")
            return value is True
        if isinstance(default, int):
            return (at / key).amount(value, 1)
        if isinstance(default, frozenset):
            return _unread(at, document)
        if isinstance(default, tuple):
            return _texts(at, document, key)
        return _texts_by_key(at, document, key)


def _hints(at: DocumentPlace, hints: Mapping[str, Any]) -> Mapping[str, tuple[str, ...]]:
    return {name: _texts(at, hints, name) for name in hints}


def _numbered(
    at: DocumentPlace, body: Mapping[str, Any], key: str, values: Sequence[object]
) -> object:
    number = body.get(key)
    if number is None:
        return None
    if type(number) is int and 0 <= number < len(values):
        return values[number]
    (at / key).wrong(number, f"give the number of one of server_{key}s, from 0")
    return None


def _unread(at: DocumentPlace, body: Mapping[str, Any]) -> frozenset[str]:
    names = _texts(at, body, "unread")
    for name in names:
        if name not in UNREAD:
            (at / "unread").wrong(name, f"cpu-tiers knows {', '.join(UNREAD)} here")
    return frozenset(names).intersection(UNREAD)


def _texts(at: DocumentPlace, body: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = at.get(body, key, list)
    return tuple(dict.fromkeys((at / key).of(value, str) for value in values))


def _texts_by_key(at: DocumentPlace, body: Mapping[str, Any], key: str) -> Mapping[str, str]:
    return {
        name: (at / key / name).of(value, str) for name, value in at.get(body, key, dict).items()
    }


def _image(at: DocumentPlace, body: object) -> Image:
    image = at.of(body, dict)
    at.check_keys(image, ("name", "properties"))
    return Image(at.get(image, "name", str), _texts_by_key(at, image, "properties"))
