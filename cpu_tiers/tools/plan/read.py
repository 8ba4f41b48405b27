"""The servers of a snapshot for a plan: their requests to new hosts, and the servers that stay.

A server has the request of its present flavor and image. Where the flavor tells nothing, as about
the bandwidth of a port, the server requests its present amounts. A snapshot without servers
(version 1) only tells amounts: each server requests its present amounts, of as many providers.
Pure.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, Protocol

from cpu_tiers.errors import InvalidInput
from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.names import DISK_GB
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.model.request import CandidateQuery, RequestGroup
from cpu_tiers.tools.cloud_model.cloud import Allocations
from cpu_tiers.tools.cloud_model.consumers import Consumers, Part, Role
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    MIGRATIONS,
    SnapshotServer,
    SnapshotServers,
)
from cpu_tiers.tools.plan.bindings import Bindings, FilterOptions
from cpu_tiers.tools.plan.hosts import NO_REQUEST, Hosts, Server, with_traits
from cpu_tiers.tools.plan.known_traits import KnownTraits
from cpu_tiers.tools.plan.movable import COLD, Subject, homeless, stays
from cpu_tiers.tools.room.free import amounts_of
from cpu_tiers.tools.room.server_queries import DISABLED_TRAIT, Request


class QueriesOf(Protocol):
    """Returns the queries for the migration of a server.

    :raises InvalidInput: flavor or image have faults.
    """

    def __call__(self, flavor: Flavor, image: Image | None) -> Request: ...


_ON_HOST = (Role.SERVER, Role.SOURCE, Role.MISPLACED, Role.UNSETTLED)
"""The roles in which the guest of a server is on the host, and is lost with it."""
_OF_PORTS = ("NET_BW_", "NET_PACKET_RATE_")
_PORT_TRAITS = ("CUSTOM_PHYSNET_", "CUSTOM_VNIC_TYPE_")


_BOUND = "hosts of "
"""The beginning of a trait that the reading gives to the hosts that Nova may choose for a server.

Placement knows no such trait. The places of a server then have to be on these hosts.
"""


def read_cloud(
    snapshot: Snapshot,
    queries_of: QueriesOf,
    *,
    is_cold: bool = False,
    options: FilterOptions = FilterOptions(),  # noqa: B008  # a value that nobody edits
    new: Flavor | None = None,
    has_servers: bool = True,
) -> Hosts:
    """Return the hosts and the servers of a snapshot.

    :param is_cold: whether servers that are powered off may be migrated.
    :param options: of nova-scheduler.
    :param new: the flavor of new servers, for which the plan makes room.
    :param has_servers: ``False`` for the hosts alone, with what is free now.
    """
    reader = _PlanReader(snapshot, queries_of, is_cold=is_cold, options=options)
    if has_servers:
        reader.note_servers()
    return reader.read(new)


def as_resident(server: Server) -> Server:
    """Return a server without what Nova asks of a host only when the server arrives there."""

    def changed(query: CandidateQuery) -> CandidateQuery:
        return query._replace(
            groups=tuple(group._replace(member_of=frozenset()) for group in query.groups),
            root_required=frozenset(
                name for name in query.root_required if not name.startswith(_BOUND)
            ),
            root_forbidden=query.root_forbidden - {DISABLED_TRAIT},
            absent=frozenset(),
        )

    return replace(server, request=server.request.changed(changed))


class _Kind(NamedTuple):
    """What servers have in common that are equal but for their names, hosts and amounts.

    :param request: of the flavor and the image.
    :param fault: why there is no request; empty if there is.
    :param stays: as :func:`stays`.
    :param homeless: as :func:`homeless`, without and with a source that can confirm.
    :param holds_ports: whether a resource of ports is held.
    """

    request: Request
    fault: str
    stays: str
    homeless: tuple[str, str]
    holds_ports: bool


class _PlanReader:
    def __init__(
        self, snapshot: Snapshot, queries_of: QueriesOf, *, is_cold: bool, options: FilterOptions
    ) -> None:
        self._snapshot, self._known = snapshot, snapshot.servers or SnapshotServers()
        self._trees, cloud = ProviderIndex(snapshot.providers), snapshot.cloud()
        self._known_traits = KnownTraits(snapshot)
        self._names = {host.root: host.name for host in cloud.hosts if host.is_host}
        self._roots = {name: root for root, name in self._names.items()}
        self._queries_of, self._is_cold, self._options = queries_of, is_cold, options
        self._of_flavor: dict[str, tuple[Request, str]] = {}
        self._kinds: dict[object, _Kind] = {}
        self._traits: dict[frozenset[str], str] = {}
        self._parts: dict[str, Part] = {}
        self._host_of: dict[str, str] = {}
        self._bindings = Bindings(self._known, self._host_of, self._roots, options)
        self._groups = {uuid: group.most for uuid, group in self._known.groups.items()}
        self._member_of: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._sources: dict[str, list[str]] = defaultdict(list)

    def note_servers(self) -> None:
        """Note what each consumer is on its host, and the groups."""
        self._parts = dict(self._each_part(Consumers(self._snapshot.servers, self._roots)))
        for part in self._parts.values():
            self._host_of[part.server] = part.host or self._names[part.root]
        self._has_unknown = any(uuid not in self._known.servers for uuid in self._parts)
        for migration in self._known.migrations.values():
            self._sources[migration.server].append(migration.source)
        self._note_groups()

    def read(self, new: Flavor | None) -> Hosts:
        """Return the hosts with their servers, in the order of Nova's list of servers.

        ``nova host-evacuate`` takes the servers of a host in this order.
        """
        bindings = self._bindings.of_flavor(new) if new else ()
        # First, so that each reading of a snapshot has the same names for them.
        traits_of_new = frozenset([self._trait(binding.hosts) for binding in bindings])
        order = {uuid: number for number, uuid in enumerate(self._known.servers)}
        parts = sorted(self._parts.items(), key=lambda item: order.get(item[1].server, len(order)))
        servers = [self._server(uuid, part) for uuid, part in parts]
        snapshot = self._snapshot
        lacking = frozenset(snapshot.service_states().lacking)
        if self._traits:
            snapshot = replace(snapshot, providers=tuple(map(self._bound, snapshot.providers)))
        return Hosts(
            cloud=snapshot.cloud(),
            servers=servers,
            groups=self._groups,
            services=self._known.services,
            closed=lacking,
            disabled=lacking,
            traits_of_new=traits_of_new,
            packs=self._options.packs,
        )

    def _each_part(self, consumers: Consumers) -> Iterator[tuple[str, Part]]:
        """Yield what each consumer is on its host; a consumer of no host is left out."""
        for uuid, allocations in self._snapshot.consumers.items():
            roots = dict.fromkeys(self._trees.roots[provider] for provider in allocations)
            if on_hosts := [root for root in roots if root in self._names]:
                parts = consumers.parts(uuid, on_hosts)
                yield uuid, next((each for each in parts if each.role is Role.SERVER), parts[0])

    def _note_groups(self) -> None:
        """Note which servers must be apart, or should: of groups, and of hints."""
        for group_id, group in self._known.groups.items():
            for member in group.members:
                self._member_of[group.policy, member].append(group_id)
        for uuid, server in self._known.servers.items():
            for other in self._bindings.pairs(server):
                self._groups[pair := f"different_host {uuid} {other}"] = 1
                self._member_of["anti-affinity", uuid].append(pair)
                self._member_of["soft-anti-affinity", other].append(pair)

    def _server(self, uuid: str, part: Part) -> Server:
        """Return a consumer as a server with its request.

        A server has what it holds on its host. A consumer that is no server on its host stays.
        """
        held = self._held(self._snapshot.consumers[uuid], part.root)
        known = self._known.servers.get(part.server) or SnapshotServer(name=uuid)
        kind = self._kind_of(known, frozenset(chain.from_iterable(held.values())))
        traits, unbound = self._bound_to(part, known)
        request, fault = kind.request, kind.fault
        if known.flavor is None:
            request = self._as_it_has(held)
        elif kind.holds_ports and not fault:
            request = self._with_ports(request, held)
        request = with_traits(request, traits)
        is_elsewhere = part.role is Role.MISPLACED and part.host
        return Server(
            uuid=uuid,
            name=known.name or uuid,
            host=self._roots[part.host] if is_elsewhere else part.root,
            amounts=() if is_elsewhere else amounts_of(held),
            request=request,
            apart=self._groups_of(part, "anti-affinity"),
            beside=self._groups_of(part, "soft-anti-affinity"),
            together=self._groups_of(part, "soft-affinity"),
            stays=self._stays(part, held, kind) or unbound or fault,
            homeless=kind.homeless[self._is_confirmable(part)] or unbound or fault,
            is_off=known.state in COLD,
            is_lost_with_host=part.role in _ON_HOST,
        )

    def _groups_of(self, part: Part, policy: str) -> tuple[str, ...]:
        """Return the groups of a server whose guest is there."""
        groups = self._member_of.get((policy, part.server), ())
        return tuple(groups) if part.role in _ON_HOST else ()

    def _held(self, allocations: Allocations, host: str) -> Allocations:
        """Return what a consumer has of a host and of shared pools."""
        roots = self._trees.roots
        return {
            provider: amounts
            for provider, amounts in allocations.items()
            if roots[provider] == host or roots[provider] not in self._names
        }

    def _stays(self, part: Part, held: Iterable[str], kind: _Kind) -> str:
        """Return why a server cannot be migrated; empty if it can."""
        if part.role is not Role.SERVER:
            return f"{part.role}: {part.mend(held)}"
        if part.root in self._known.down:
            return "its nova-compute is down: openstack server evacuate, if the host is lost"
        return kind.stays

    def _is_confirmable(self, part: Part) -> bool:
        """Tell whether the source of an unconfirmed resize is on another host.

        Its nova-compute then confirms, and Nova evacuates the server.
        """
        if MIGRATIONS in self._known.unread:
            return self._has_unknown
        return any(
            source != self._names[part.root] for source in self._sources.get(part.server, ())
        )

    def _bound_to(self, part: Part, known: SnapshotServer) -> tuple[frozenset[str], str]:
        """Return the traits of the hosts that Nova may choose, and why there is no other host."""
        traits = list[str]()
        for binding, left in self._bindings.steps(part.server, known):
            traits.append(self._trait(binding.hosts))
            if left <= {self._names[part.root]}:
                return frozenset(traits), f"{binding.why}, and no other host is left"
        return frozenset(traits), ""

    def _bound(self, provider: Provider) -> Provider:
        """Return a provider with the traits of the servers that Nova may place on it."""
        if provider.uuid not in self._names:
            return provider
        own = (trait for hosts, trait in self._traits.items() if provider.name in hosts)
        return replace(provider, traits=provider.traits.union(own))

    def _kind_of(self, known: SnapshotServer, classes: frozenset[str]) -> _Kind:
        """Return what a server has in common with all servers that are equal in this."""
        key = id(known.flavor), id(known.image), known.state, known.task, known.stays, classes
        if key not in self._kinds:
            subject = Subject(known, classes)
            self._kinds[key] = _Kind(
                *self._request(known, classes),
                stays=stays(subject, is_cold=self._is_cold),
                homeless=(homeless(subject), homeless(subject, is_confirmable=True)),
                holds_ports=any(name.startswith(_OF_PORTS) for name in classes),
            )
        return self._kinds[key]

    def _request(self, known: SnapshotServer, classes: Collection[str]) -> tuple[Request, str]:
        """Return the request of a migration, and why there is none."""
        if known.flavor is None:
            return NO_REQUEST, ""
        flavor, image = known.flavor, known.image
        if DISK_GB not in classes:  # the root disk is a volume
            flavor = flavor._replace(root_gb=0)
        key = repr((flavor, image))
        if key not in self._of_flavor:
            try:
                fault = self._known_traits.refusal(flavor, image)
                self._of_flavor[key] = self._queries_of(flavor, image), fault
            except InvalidInput as error:
                self._of_flavor[key] = NO_REQUEST, f"its flavor or image has faults: {error}"
        return self._of_flavor[key]

    def _with_ports(self, request: Request, allocations: Allocations) -> Request:
        """Return a request with what a server holds for its ports.

        Nova asks for what flavor, image and ports request, whatever else the server holds.
        """
        ports = tuple(self._of_children(allocations, _OF_PORTS, request.classes))
        if not ports:
            return request
        return request.changed(
            lambda query: query._replace(
                groups=query.groups + ports, group_policy=query.group_policy or "none"
            )
        )

    def _trait(self, hosts: frozenset[str]) -> str:
        """Return the trait that only some hosts have."""
        return self._traits.setdefault(hosts, f"{_BOUND}{len(self._traits)}")

    def _as_it_has(self, allocations: Allocations) -> Request:
        """Return the query for the amounts that a server has, of as many providers."""
        of_roots = Counter[str]()
        for uuid, amounts in allocations.items():
            if self._trees.roots[uuid] == uuid:
                of_roots.update(amounts)
        groups = [RequestGroup(resources=dict(of_roots))] if of_roots else []
        groups += self._of_children(allocations)
        forbidden = frozenset({DISABLED_TRAIT})
        return Request((CandidateQuery(tuple(groups), "isolate", root_forbidden=forbidden),))

    def _of_children(
        self,
        allocations: Allocations,
        only: tuple[str, ...] = ("",),
        requested: Collection[str] = (),
    ) -> Iterator[RequestGroup]:
        """Yield a group for what a server has of each child provider.

        :param only: the beginnings of the resource classes of the groups.
        :param requested: classes that other groups request.
        """
        for number, (uuid, held) in enumerate(allocations.items()):
            amounts = {
                name: amount
                for name, amount in held.items()
                if name.startswith(only) and name not in requested
            }
            if amounts and self._trees.roots[uuid] != uuid:
                traits = self._trees.by_id[uuid].traits
                required = frozenset(name for name in traits if name.startswith(_PORT_TRAITS))
                yield RequestGroup(f"_AS{number}", amounts, required=required)


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
