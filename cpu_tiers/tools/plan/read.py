"""The servers of a snapshot for a plan: their requests to new hosts, and the servers that stay.

A server has the request of its present flavor. Where the flavor tells nothing, as about the
bandwidth of a port, the server requests its present amounts. A snapshot without servers (version
1) only tells amounts: each server requests its present amounts, of as many providers. Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.names import DISK_GB
from cpu_tiers.model.providers import ProviderIndex
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.cloud import Allocations
from cpu_tiers.tools.cloud_model.consumers import Consumers, Part, Role
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    HOST,
    MIGRATIONS,
    UNREAD,
    ServerGroup,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.hosts import Hosts, Server, kind_of
from cpu_tiers.tools.room.free import amounts_of
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT

QueriesOf = Callable[[Flavor], tuple[CandidateQuery, ...]]
"""Returns the queries for the migration of a server of a flavor.

:raises InvalidInput: the flavor has faults.
"""

NO_SERVERS = (
    "flavors, states and groups of servers: the snapshot is of version 1, so each server requests"
    " what it has, and all servers are taken for running"
)

_UNKNOWN = (
    "servers with SR-IOV ports or images that keep Nova from migrating them, forced hosts and"
    " scheduler hints, and the availability zone that a server asked for",
    "live migration that nova.conf or libvirt refuses, such as between different CPU models",
)
_ON_HOST = (Role.SERVER, Role.SOURCE, Role.MISPLACED, Role.UNSETTLED)
"""The roles in which the guest of a server is on the host, and is lost with it."""
_LIVE, _COLD = frozenset({"ACTIVE", "PAUSED", ""}), frozenset({"SHUTOFF"})

_DEVICES = (
    "CUSTOM_PCI_",
    "PCI_DEVICE",
    "VGPU",
    "PGPU",
    "FPGA",
    "CUSTOM_ACCELERATOR_",
    "CUSTOM_FPGA",
)
_KEEPING_SPECS: Mapping[str, str] = {
    "pci_passthrough:alias": "it has a PCI device",
    "accel:device_profile": "it has an accelerator",
    "hw:tpm_version": "it has a virtual TPM",
    "hw:mem_encryption": "its memory is encrypted",
    "hw:pmem": "it has persistent memory",
}
_OF_PORTS = ("NET_BW_", "NET_PACKET_RATE_")
_PORT_TRAITS = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")


def unknown_of(snapshot: Snapshot) -> Sequence[str]:
    """Return what a plan for a snapshot cannot know."""
    if snapshot.servers is None:
        return (NO_SERVERS, *_UNKNOWN)
    return (*(UNREAD[name] for name in snapshot.servers.unread & {HOST, MIGRATIONS}), *_UNKNOWN)


def read_cloud(snapshot: Snapshot, queries_of: QueriesOf, *, is_cold: bool = False) -> Hosts:
    """Return the hosts and the servers of a snapshot.

    :param is_cold: whether servers that are powered off may be migrated.
    """
    reader = _Reader(snapshot, queries_of, is_cold=is_cold)
    servers = (reader.server(uuid, held) for uuid, held in snapshot.consumers.items())
    reader.hosts.servers = [server for server in servers if server is not None]
    return reader.hosts


class _Reader:
    def __init__(self, snapshot: Snapshot, queries_of: QueriesOf, *, is_cold: bool) -> None:
        self._known = known = snapshot.servers or SnapshotServers()
        self.hosts = Hosts(
            cloud=snapshot.cloud(),
            servers=(),
            groups={uuid: group.most for uuid, group in known.groups.items()},
            services=known.services,
            closed=frozenset(known.down),
        )
        self._trees = ProviderIndex(snapshot.providers)
        self._roots = {name: root for root, name in self.hosts.names.items()}
        self._consumers = Consumers(snapshot.servers, self._roots)
        self._queries_of = queries_of
        self._is_cold = is_cold
        self._of_flavor: dict[str, tuple[tuple[CandidateQuery, ...], str]] = {}
        self._groups: dict[str, dict[str, ServerGroup]] = defaultdict(dict)
        for group_id, group in known.groups.items():
            for member in group.members:
                self._groups[member][group_id] = group

    def server(self, uuid: str, allocations: Allocations) -> Server | None:
        """Return a consumer as a server with its request; ``None`` for a consumer of no host.

        A server has what it holds on its host. A consumer that is no server on its host stays.
        """
        roots = dict.fromkeys(self._trees.roots[provider] for provider in allocations)
        on_hosts = [root for root in roots if root in self.hosts.names]
        if not on_hosts:
            return None
        parts = self._consumers.parts(uuid, on_hosts)
        part = next((each for each in parts if each.role is Role.SERVER), parts[0])
        held = self._held(allocations, part.root)
        known = self._known.servers.get(part.server) or SnapshotServer(name=uuid)
        classes = {name for amounts in held.values() for name in amounts}
        queries, fault = self._queries(known, classes, held)
        is_there = part.role in _ON_HOST
        groups = self._groups.get(part.server, {}).items() if is_there else ()
        is_elsewhere = part.role is Role.MISPLACED and part.host
        return Server(
            uuid=uuid,
            name=known.name or uuid,
            host=self._roots[part.host] if is_elsewhere else part.root,
            amounts=() if is_elsewhere else amounts_of(held),
            queries=queries,
            kind=kind_of(queries),
            apart=tuple(name for name, group in groups if group.policy == "anti-affinity"),
            stays=_unsettled(part, held) or self._stays(uuid, known, part.root, classes) or fault,
            is_off=known.state in _COLD,
            is_lost_with_host=is_there,
        )

    def _held(self, allocations: Allocations, host: str) -> Allocations:
        """Return what a consumer has of a host and of shared pools."""
        roots, hosts = self._trees.roots, self.hosts.names
        return {
            provider: amounts
            for provider, amounts in allocations.items()
            if roots[provider] == host or roots[provider] not in hosts
        }

    def _stays(self, uuid: str, known: SnapshotServer, host: str, classes: Iterable[str]) -> str:
        """Return why a server cannot be migrated; empty if it can."""
        if host in self._known.down:
            return "its nova-compute is down: openstack server evacuate, if the host is lost"
        if any(name.startswith(_DEVICES) for name in classes):
            return "it has a PCI device, a virtual GPU or an accelerator"
        specs = known.flavor.extra_specs if known.flavor else {}
        reason = next((why for key, why in _KEEPING_SPECS.items() if specs.get(key)), "")
        return known.stays or reason or self._state(known) or self._affinity(uuid)

    def _state(self, known: SnapshotServer) -> str:
        if known.is_locked:
            return "it is locked: openstack server unlock, if it may go"
        if known.task:
            return f"Nova works on it ({known.task}): plan again afterwards"
        if known.state in _COLD:
            return "" if self._is_cold else "it is powered off: --cold lets it move"
        return "" if known.state in _LIVE else f"Nova migrates no server in state {known.state}"

    def _affinity(self, uuid: str) -> str:
        """Return the affinity group that keeps a server with another server."""
        for group in self._groups.get(uuid, {}).values():
            if group.policy == "affinity" and any(
                member != uuid and member in self._known.servers for member in group.members
            ):
                return f"it must stay with the servers of the affinity group {group.name}"
        return ""

    def _queries(
        self, known: SnapshotServer, classes: Collection[str], allocations: Allocations
    ) -> tuple[tuple[CandidateQuery, ...], str]:
        """Return the queries of a migration, and why there are none."""
        if known.flavor is None:
            return self._as_it_has(allocations), ""
        flavor = known.flavor
        if DISK_GB not in classes:  # the root disk is a volume
            flavor = flavor._replace(root_gb=0)
        key = repr(flavor)
        if key not in self._of_flavor:
            try:
                self._of_flavor[key] = self._queries_of(flavor), ""
            except InvalidInput as error:
                self._of_flavor[key] = (), f"its flavor has faults: {error}"
        queries, fault = self._of_flavor[key]
        further = set(classes).difference(*(query.resources() for query in queries))
        if fault or not further:
            return queries, fault
        if not all(name.startswith(_OF_PORTS) for name in further):
            return self._as_it_has(allocations), ""
        ports = tuple(self._of_children(allocations, _OF_PORTS))
        return tuple(
            query._replace(groups=query.groups + ports, group_policy=query.group_policy or "none")
            for query in queries
        ), ""

    def _as_it_has(self, allocations: Allocations) -> tuple[CandidateQuery, ...]:
        """Return the query for the amounts that a server has, of as many providers."""
        of_roots = Counter[str]()
        for uuid, amounts in allocations.items():
            if self._trees.roots[uuid] == uuid:
                of_roots.update(amounts)
        groups = [RequestGroup(resources=dict(of_roots))] if of_roots else []
        groups += self._of_children(allocations)
        return (
            CandidateQuery(tuple(groups), "isolate", root_forbidden=frozenset({DISABLED_TRAIT})),
        )

    def _of_children(
        self, allocations: Allocations, only: tuple[str, ...] = ("",)
    ) -> Iterator[RequestGroup]:
        """Yield a group for what a server has of each child provider.

        :param only: the beginnings of the resource classes of the groups.
        """
        for number, (uuid, held) in enumerate(allocations.items()):
            amounts = {name: amount for name, amount in held.items() if name.startswith(only)}
            if amounts and self._trees.roots[uuid] != uuid:
                traits = self._trees.by_id[uuid].traits
                required = frozenset(name for name in traits if name.startswith(_PORT_TRAITS))
                yield RequestGroup(f"_AS{number}", amounts, required=required)


def _unsettled(part: Part, held: Iterable[str]) -> str:
    """Return what a consumer is, and the command that ends this; empty for a server."""
    return "" if part.role is Role.SERVER else f"{part.role}: {part.mend(held)}"


def roots_by_name(hosts: Hosts) -> Mapping[str, str]:
    """Return the root providers of hosts by their names in Placement and in Nova's API."""
    by_name = {hosts.services[root]: root for root in hosts.names if root in hosts.services}
    return by_name | {name: root for root, name in hosts.names.items()}


def hosts_named(hosts: Hosts, names: Collection[str], where: str) -> Mapping[str, str]:
    """Return the root providers of hosts by their names, those of Placement or of Nova's API.

    :param where: the argument that has the names, for an error.
    :raises InvalidInput: the cloud has no such host.
    """
    by_name = roots_by_name(hosts)
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise InvalidInput.of(
            where,
            f"{', '.join(unknown)}: the cloud has no such host",
            "openstack hypervisor list shows the hosts",
        )
    return {name: by_name[name] for name in names}
