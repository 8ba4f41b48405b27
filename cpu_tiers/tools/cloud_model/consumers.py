"""What each consumer of Placement is on each of its hosts, by the words of Nova and Placement.

Placement says what is held, and Nova where the server is. The two differ during a migration, until
a resize is confirmed, after an evacuation until the old host is back, and after a fault. All that
counts, moves or heals servers asks :class:`Consumers`. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.placement.records import INSTANCE, MIGRATION
from cpu_tiers.tools.cloud_model.providers import is_host
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    HOST,
    MIGRATIONS,
    ServerMigration,
    SnapshotServer,
    SnapshotServers,
)

_UNCONFIRMED, _EVACUATION = "finished", "evacuation"
_OF_NOVA = (INSTANCE, MIGRATION, "unknown")
_OVER = (_UNCONFIRMED, "done")
"""The statuses in which the server is on the target."""


class Role(StrEnum):
    """What the allocations of a consumer are on a host; the value says it in words."""

    SERVER = "a server on its host"
    TARGET = "the target of a move that is not over"
    SOURCE = "the source of a migration that is not over"
    UNCONFIRMED = "the source of a resize or a cold migration that is not confirmed"
    EVACUATED = "left on the host that the server was evacuated from"
    LEAKED = "left on a host that the server is not on"
    MISPLACED = "on another host than the server"
    ORPHAN = "of no server of Nova and of no migration"
    OTHER = "of no server: a migration or another consumer"
    UNSETTLED = "of several hosts, and the server is on one of them"

    @property
    def is_wrong(self) -> bool:
        """Tell whether the allocations stay wrong until somebody mends them."""
        return self in (Role.LEAKED, Role.MISPLACED, Role.ORPHAN)


_UNSET = "openstack resource provider allocation unset --os-placement-api-version 1.28"
_DELETE = "openstack resource provider allocation delete"
_MENDS: Mapping[Role, str] = {
    Role.TARGET: "openstack server migration list --server {server} shows its migrations",
    Role.SOURCE: "openstack server migration list --server {server} shows the migration",
    Role.UNCONFIRMED: "openstack server resize confirm {server}, or resize revert",
    Role.EVACUATED: "Start nova-compute of the host again, which frees them; if the host is lost,"
    " openstack compute service delete",
    Role.LEAKED: f"{_UNSET} {{providers}} {{consumer}}",
    Role.MISPLACED: f"{_DELETE} {{consumer}}, then cpu-tiers allocation heal --apply --server"
    " {consumer}; for a host without shares, nova-manage placement heal_allocations --instance"
    " {consumer}",
    Role.ORPHAN: f"If openstack server show {{consumer}} finds none: {_DELETE} {{consumer}}",
    Role.OTHER: "openstack server migration list shows the migrations",
    Role.UNSETTLED: "openstack server show {consumer} says on which",
}


class Part(NamedTuple):
    """What a consumer has of the provider tree of a host.

    :param root: the uuid of the root provider of the host.
    :param server: the uuid of the server to which the part belongs; empty for none.
    :param host: the name of the root provider of the host that Nova has the server on; empty for
        none, or if it is not known.
    """

    consumer: str
    root: str
    role: Role
    server: str = ""
    host: str = ""

    def mend(self, providers: Iterable[str]) -> str:
        """Return the command that mends or ends the state; empty for a server on its host.

        :param providers: the uuids of the host's providers of which the consumer has something.
        """
        options = " ".join(f"--provider {uuid}" for uuid in providers)
        text = _MENDS.get(self.role, "")
        server = self.server or self.consumer
        return text.format(consumer=self.consumer, server=server, providers=options)


class Consumers:
    """Says what consumers are.

    :param servers: what Nova says; ``None`` if Nova was not asked, and each consumer is a server.
    :param roots: the uuids of the root providers by their names.
    """

    def __init__(self, servers: SnapshotServers | None, roots: Mapping[str, str]) -> None:
        self._servers, self._roots = servers or SnapshotServers(), roots
        self._is_asked = servers is not None
        self._moves: dict[str, list[ServerMigration]] = defaultdict(list)
        for move in self._servers.migrations.values():
            self._moves[move.server].append(move)

    def parts(self, consumer: str, roots: Collection[str]) -> list[Part]:
        """Return the part of a consumer on each host of its allocations.

        :param roots: the root providers of these hosts.
        """
        server = self._servers.servers.get(consumer)
        if server is None:
            return [self._of_others(consumer, root, roots) for root in roots]
        host = self._roots.get(server.host, "")
        is_known = HOST not in self._servers.unread_of(consumer)
        return [
            Part(
                consumer,
                root,
                self._role(consumer, server, root, {*roots})
                if is_known
                else self._presumed(root, roots),
                consumer,
                server.host if host else "",
            )
            for root in roots
        ]

    def _role(self, uuid: str, server: SnapshotServer, root: str, roots: Collection[str]) -> Role:
        """Return the role of a server on a host, by the host that Nova names for the server."""
        here = self._roots.get(server.host, server.host)
        if root == here:
            return Role.SERVER
        if role := self._role_in_moves(uuid, root):
            return role
        if server.task or (not here and server.state == "BUILD"):
            return Role.TARGET
        if MIGRATIONS in self._servers.unread and root in self._servers.down:
            return Role.EVACUATED
        return Role.MISPLACED if here and here not in roots else Role.LEAKED

    def _role_in_moves(self, uuid: str, root: str) -> Role | None:
        for move in self._moves[uuid]:
            if move.kind == _EVACUATION and root == self._roots.get(move.source):
                return Role.EVACUATED
            is_target = root == self._roots.get(move.target) or not move.target
            if is_target and move.status not in _OVER:
                return Role.TARGET
        return None

    def _presumed(self, root: str, roots: Collection[str]) -> Role:
        """Return what a server is on a host as Placement and the states of the hosts have it."""
        up = [each for each in roots if each not in self._servers.down]
        if len(roots) == 1 or up == [root]:
            return Role.SERVER
        return Role.EVACUATED if len(up) == 1 else Role.UNSETTLED

    def _of_others(self, consumer: str, root: str, roots: Collection[str]) -> Part:
        move = self._servers.migrations.get(consumer)
        if move is not None:
            role = Role.UNCONFIRMED if move.status == _UNCONFIRMED else Role.SOURCE
            return Part(consumer, root, role, move.server)
        if not self._is_asked:
            is_clear = len(roots) == 1
            return Part(consumer, root, Role.SERVER if is_clear else Role.UNSETTLED, consumer)
        services, unread = self._servers.services, self._servers.unread
        # A cell that does not answer is left out of Nova's lists, with hosts and servers.
        answers = not services or any(each in services for each in roots)
        is_known = answers and not unread & {HOST, MIGRATIONS}
        is_of_nova = self._servers.types.get(consumer, INSTANCE) in _OF_NOVA
        return Part(consumer, root, Role.ORPHAN if is_known and is_of_nova else Role.OTHER)


def sold_roots(parts: Collection[Part]) -> frozenset[str]:
    """Return the hosts on which the allocations of a consumer are those of its server, once.

    During an evacuation the server has the old host until it is on the new host; what the target
    of a migration holds is sold while the migration holds the source.
    """
    for role in (Role.SERVER, Role.TARGET, Role.MISPLACED):
        if roots := frozenset(part.root for part in parts if part.role is role):
            return roots
    return frozenset()


def consumer_parts(snapshot: Snapshot) -> Iterator[list[Part]]:
    """Yield what each consumer of a snapshot is on its hosts; shared pools are no hosts."""
    trees = ProviderIndex(snapshot.providers)
    hosts = host_roots(trees, snapshot.servers)
    consumers = Consumers(snapshot.servers, {trees.name(root): root for root in hosts})
    for consumer, allocations in snapshot.consumers.items():
        roots = dict.fromkeys(trees.roots[provider] for provider in allocations)
        of_hosts = [root for root in roots if root in hosts]
        yield consumers.parts(consumer, of_hosts or list(roots))


def host_roots(trees: ProviderIndex, servers: SnapshotServers | None) -> frozenset[str]:
    """Return the root providers of hosts: with a nova-compute, or with CPUs or memory."""
    services = servers.services if servers else {}
    return frozenset(
        trees.roots[uuid]
        for uuid, provider in trees.by_id.items()
        if uuid in services or is_host([provider.inventories])
    )
