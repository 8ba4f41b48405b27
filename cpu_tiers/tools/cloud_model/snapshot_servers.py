"""The servers of a snapshot, as Nova says them: where each is, what it is, and what moves it.

A plan needs them: the servers that may be migrated, their requests of the next host, and the
servers that must be on different hosts. Version 1 of a snapshot has no servers, and version 2 has
no hosts, zones, hints, images, migrations and aggregates. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.flavor import Flavor, Image

SERVERS = (
    *("servers", "server_flavors", "server_images", "groups", "migrations", "host_aggregates"),
    *("services", "down", "unread"),
)
"""The keys of a snapshot for servers."""

SERVER_KEYS = (
    *("name", "flavor", "state", "task", "locked", "stays", "host", "project", "zone", "hints"),
    *("image", "volume", "lock_reason", "unread"),
)
GROUP_KEYS = ("name", "policy", "most", "members")
MIGRATION_KEYS = ("server", "kind", "status", "source", "target")
AGGREGATE_KEYS = ("name", "zone", "hosts", "metadata")

HOST, ZONE, HINTS, IMAGE, IMAGE_TRAITS = "host", "zone", "hints", "image", "image traits"
MIGRATIONS, AGGREGATES = "migrations", "aggregates"
UNREAD: Mapping[str, str] = {
    HOST: "the host on which Nova has each server",
    ZONE: "the availability zone that a server asked for (Nova's API tells it since 2.96)",
    HINTS: "scheduler hints (Nova's API tells them since 2.100)",
    IMAGE: "the properties of images (Nova's API tells them since 2.98)",
    IMAGE_TRAITS: "the traits that images require, which only Glance tells",
    MIGRATIONS: "migrations that are in progress or not confirmed",
    AGGREGATES: "the metadata of host aggregates",
}
"""What a cloud may leave unsaid: the words for an answer, by the name in ``unread``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotServer:
    """A server of Nova.

    :param flavor: the flavor that is embedded in the server; ``None`` if it is not known.
    :param state: the status in Nova's API, such as ``ACTIVE``; empty if it is not known.
    :param task: the task that Nova works on, such as ``migrating``; empty for none.
    :param is_locked: whether the server is locked; an administrator may still migrate it.
    :param lock_reason: why the server is locked, as the user said.
    :param stays: why an operator keeps the server on its host; empty for a server that may go.
    :param host: the name of the root provider of the host on which Nova has the server; empty for
        a server that Nova has on no host, such as a shelved server.
    :param project: the id of the project.
    :param zone: the availability zone in which the server must stay; empty for any zone.
    :param hints: the scheduler hints, each with all its values.
    :param image: the image with the properties that the server was made with; ``None`` for a
        server from a volume, of whose image Nova tells nothing.
    :param is_from_volume: whether the root disk is a volume.
    :param unread: the names in :data:`UNREAD` of what is not known of this server.
    """

    name: str
    flavor: Flavor | None = None
    state: str = ""
    task: str = ""
    is_locked: bool = False
    lock_reason: str = ""
    stays: str = ""
    host: str = ""
    project: str = ""
    zone: str = ""
    hints: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    image: Image | None = None
    is_from_volume: bool = False
    unread: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerGroup:
    """A server group of Nova.

    :param policy: ``affinity``, ``anti-affinity``, or one of the soft policies.
    :param most: the members that a host may have with ``anti-affinity``.
    :param members: the uuids of the servers.
    """

    name: str
    policy: str
    most: int = 1
    members: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerMigration:
    """A migration of Nova that is in progress, not confirmed, or whose source is not cleaned up.

    :param server: the uuid of the server.
    :param kind: ``live-migration``, ``migration``, ``resize`` or ``evacuation``.
    :param status: the status in Nova's API, such as ``running`` or ``finished``.
    :param source, target: the names of the root providers of both hosts; empty while Nova has not
        chosen the target.
    """

    server: str
    kind: str
    status: str
    source: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotAggregate:
    """A host aggregate of Nova, which has the same uuid in Placement.

    :param zone: the availability zone that the aggregate makes of its hosts; empty for none.
    :param hosts: the names of the root providers of the hosts.
    """

    name: str
    zone: str = ""
    hosts: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotServers:
    """All servers of a cloud, by uuid, and what Nova keeps beside them.

    :param groups: the server groups by id.
    :param migrations: the migrations by uuid, which is that of a consumer in Placement.
    :param aggregates: the host aggregates by uuid.
    :param services: the host of each nova-compute by the uuid of its root provider, which has
        the name of the hypervisor; Nova's API wants the former.
    :param down: the root providers of the hosts whose nova-compute is down.
    :param unread: the names in :data:`UNREAD` of what is not known of any server.
    """

    servers: Mapping[str, SnapshotServer] = field(default_factory=dict)
    groups: Mapping[str, ServerGroup] = field(default_factory=dict)
    migrations: Mapping[str, ServerMigration] = field(default_factory=dict)
    aggregates: Mapping[str, SnapshotAggregate] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    down: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()

    def to_json(self, flavor_json: Callable[[Flavor], object]) -> dict[str, object]:
        """Return the keys of the document; equal flavors stand once in ``server_flavors``."""
        numbers: dict[str, int] = {}
        flavors: list[object] = []

        def number(flavor: Flavor | None) -> int | None:
            if flavor is None:
                return None
            if repr(flavor) not in numbers:  # a flavor has a dict, which has no hash
                numbers[repr(flavor)] = len(flavors)
                flavors.append(flavor_json(flavor))
            return numbers[repr(flavor)]

        servers = {
            uuid: {
                "name": server.name,
                "flavor": number(server.flavor),
                "state": server.state,
                **({"task": server.task} if server.task else {}),
                **({"locked": True} if server.is_locked else {}),
                **({"stays": server.stays} if server.stays else {}),
            }
            for uuid, server in self.servers.items()
        }
        groups = {
            uuid: {"name": g.name, "policy": g.policy, "most": g.most, "members": list(g.members)}
            for uuid, g in self.groups.items()
        }
        return {
            "servers": servers,
            "server_flavors": flavors,
            "groups": groups,
            "services": dict(self.services),
            "down": list(self.down),
        }

    def masked(
        self,
        servers: Mapping[str, str],
        groups: Mapping[str, str],
        flavors: Iterable[Flavor],
        providers: Mapping[str, str],
    ) -> SnapshotServers:
        """Return the servers with new names and ids.

        :param servers: the new ids of the servers by the old ids.
        :param groups: the new ids of the groups by the old ids.
        :param flavors: the masked flavor of each server, in the order of the servers.
        :param providers: the new ids of the providers by the old ids.
        """
        return SnapshotServers(
            servers={
                servers[uuid]: replace(
                    server,
                    name=f"server-{number}",
                    flavor=None if server.flavor is None else flavor,
                    stays="the operator keeps it" if server.stays else "",
                )
                for number, ((uuid, server), flavor) in enumerate(
                    zip(self.servers.items(), flavors, strict=True), start=1
                )
            },
            groups={
                groups[uuid]: replace(
                    group,
                    name=f"group-{number}",
                    members=tuple(servers[m] for m in group.members if m in servers),
                )
                for number, (uuid, group) in enumerate(self.groups.items(), start=1)
            },
            down=tuple(providers[uuid] for uuid in self.down if uuid in providers),
        )


def read_servers(
    at: DocumentPlace, document: Mapping[str, Any], flavors: Sequence[Flavor]
) -> SnapshotServers:
    """Return the servers of a document, which are missing in version 1.

    :param flavors: what ``server_flavors`` has.
    """
    servers = {
        uuid: _server(at / "servers" / uuid, body, flavors)
        for uuid, body in at.get(document, "servers", dict).items()
    }
    groups = {
        uuid: _group(at / "groups" / uuid, body)
        for uuid, body in at.get(document, "groups", dict).items()
    }
    services = at.get(document, "services", dict)
    for uuid, host in services.items():
        (at / "services" / uuid).of(host, str)
    down = tuple((at / "down").of(uuid, str) for uuid in at.get(document, "down", list))
    return SnapshotServers(
        servers=servers, groups=groups, services=services, down=down, unread=frozenset(UNREAD)
    )


def _server(at: DocumentPlace, body: object, flavors: Sequence[Flavor]) -> SnapshotServer:
    server = at.of(body, dict)
    at.check_keys(server, SERVER_KEYS)
    number, is_locked = server.get("flavor"), server.get("locked", False)
    if number is not None and not (type(number) is int and 0 <= number < len(flavors)):
        (at / "flavor").wrong(number, "give the number of a flavor in server_flavors, from 0")
        number = None
    if not isinstance(is_locked, bool):
        (at / "locked").wrong(is_locked, "give true or false")
    return SnapshotServer(
        name=at.get(server, "name", str),
        flavor=None if number is None else flavors[number],
        state=at.get(server, "state", str),
        task=at.get(server, "task", str),
        is_locked=is_locked is True,
        stays=at.get(server, "stays", str),
    )


def _group(at: DocumentPlace, body: object) -> ServerGroup:
    group = at.of(body, dict)
    at.check_keys(group, GROUP_KEYS)
    members = at.get(group, "members", list)
    return ServerGroup(
        name=at.get(group, "name", str),
        policy=at.get(group, "policy", str),
        most=(at / "most").amount(group.get("most", 1), 1),
        members=tuple(dict.fromkeys((at / "members").of(member, str) for member in members)),
    )
