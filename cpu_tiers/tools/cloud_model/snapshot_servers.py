"""The servers of a snapshot: host, request and state of each server, as Nova tells them.

A plan needs them: the servers that may be migrated, their requests of the next host, and the
servers that must be on different hosts. Version 1 of a snapshot has no servers, and version 2 has
no hosts, zones, hints, images, migrations and aggregates. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpu_tiers.model.flavor import Flavor, Image

HOST, ZONE, HINTS, IMAGE, IMAGE_TRAITS = "host", "zone", "hints", "image", "image traits"
MIGRATIONS, AGGREGATES = "migrations", "aggregates"
UNREAD: Mapping[str, str] = {
    HOST: "the host on which Nova has each server",
    ZONE: "the availability zone that a server asked for (Nova's API tells it since 2.96)",
    HINTS: "scheduler hints (Nova's API tells them since 2.100)",
    IMAGE: "the properties of images (Nova's API tells them since 2.98, but not of servers from"
    " volumes)",
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
    :param types: what Placement says that a consumer is, of some consumers unknown to Nova.
    :param unread: the names in :data:`UNREAD` of what is not known of any server; by default, all
        that a snapshot of version 2 does not have.
    """

    servers: Mapping[str, SnapshotServer] = field(default_factory=dict)
    groups: Mapping[str, ServerGroup] = field(default_factory=dict)
    migrations: Mapping[str, ServerMigration] = field(default_factory=dict)
    aggregates: Mapping[str, SnapshotAggregate] = field(default_factory=dict)
    services: Mapping[str, str] = field(default_factory=dict)
    down: tuple[str, ...] = ()
    types: Mapping[str, str] = field(default_factory=dict)
    unread: frozenset[str] = frozenset(UNREAD)

    def unread_of(self, uuid: str) -> frozenset[str]:
        """Return the names in :data:`UNREAD` of what is not known of a server."""
        return self.unread | self.servers[uuid].unread
