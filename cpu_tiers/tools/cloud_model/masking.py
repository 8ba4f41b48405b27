"""A snapshot with other names and ids, which gives equal simulations. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from cpu_tiers.model.flavor import Flavor, Image
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import (
    ServerGroup,
    ServerMigration,
    SnapshotAggregate,
    SnapshotServer,
    SnapshotServers,
)

_KEPT = ("hw:", "resources", "required", "trait", "quota:", "group_policy", "same_subtree")
"""How the keys begin of the extra specs that a masked flavor keeps."""
_KEPT_OF_IMAGE = ("hw_", "trait:", "traits_required", "img_hv_type", "os_type", "os_distro")
_TENANTS = "filter_tenant_id"
_KEPT_OF_AGGREGATE = (
    *("cpu_", "ram_", "disk_", "io_ops_", "max_", "trait:", "hw_", "os_", "img_", "soft_", "pci_"),
    *("build_failure_", "metrics_", "cross_cell_", "hypervisor_version_", "num_instances_"),
    *("image_props_", "resource_provider_"),
)
"""How the keys begin of the metadata that filters and weighers read; the values have no names."""


def masked(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with new names and ids; equal names stay equal everywhere.

    A masked snapshot gives equal simulations: amounts, resource classes, traits, and the extra
    specs, image properties and metadata that decide about hosts are kept. Hosts, aggregates,
    consumers and flavors are numbered in the order of the snapshot.
    """
    providers = snapshot.providers
    ids = _ids(1, (provider.uuid for provider in providers))
    servers = snapshot.servers or SnapshotServers()
    used = (name for p in providers for name in sorted(p.aggregates))
    aggregates = _ids(2, [*used, *servers.aggregates])
    consumers = _ids(3, [*snapshot.consumers, *servers.servers, *servers.migrations])
    names = _names(providers)
    return Snapshot(
        providers=tuple(_masked_provider(each, ids, names, aggregates) for each in providers),
        consumers={
            consumers[consumer]: {ids[uuid]: amounts for uuid, amounts in allocations.items()}
            for consumer, allocations in snapshot.consumers.items()
        },
        flavors=tuple(
            masked_flavor(flavor, f"flavor-{number}")
            for number, flavor in enumerate(snapshot.flavors, start=1)
        ),
        is_masked=True,
        taken=snapshot.taken,
        traits=snapshot.traits,
        servers=snapshot.servers
        and _masked_servers(servers, consumers, aggregates, _renamed(providers, ids, names)),
    )


def _masked_provider(
    provider: Provider,
    ids: Mapping[str, str],
    names: Mapping[str, str],
    aggregates: Mapping[str, str],
) -> Provider:
    return replace(
        provider,
        uuid=ids[provider.uuid],
        name=names[provider.uuid],
        parent=None if provider.parent is None else ids[provider.parent],
        aggregates=frozenset(aggregates[name] for name in provider.aggregates),
    )


class _ServerMasks:
    """The new names and ids of what belongs to servers; a name of nothing known is dropped.

    :param ids: the new ids of consumers.
    :param names: the new names of providers by the old names.
    """

    def __init__(
        self, servers: SnapshotServers, ids: Mapping[str, str], names: Mapping[str, str]
    ) -> None:
        self._ids, self._names = ids, names
        self.groups = _ids(4, servers.groups)
        each, aggregates = servers.servers.values(), servers.aggregates.values()
        projects = sorted({server.project for server in each if server.project})
        self.projects = _ids(5, projects) | {"": ""}
        zones = sorted({a.zone for a in aggregates} | {server.zone for server in each})
        self.zones = _numbered("zone", filter(None, zones)) | {"": ""}
        self._flavors = _numbered("server-flavor", map(repr, (s.flavor for s in each if s.flavor)))
        self._images = _numbered("image", map(repr, (s.image for s in each if s.image)))

    def server(self, number: int, server: SnapshotServer) -> SnapshotServer:
        flavor, image = server.flavor, server.image
        return replace(
            server,
            name=f"server-{number}",
            flavor=flavor and masked_flavor(flavor, self._flavors[repr(flavor)]),
            lock_reason="",
            stays="the operator keeps it" if server.stays else "",
            host=self._names.get(server.host, ""),
            project=self.projects[server.project],
            zone=self.zones[server.zone],
            hints={name: self._hint(values) for name, values in server.hints.items()},
            image=image
            and Image(self._images[repr(image)], _with_keys(_KEPT_OF_IMAGE, image.properties)),
        )

    def _hint(self, values: Iterable[str]) -> tuple[str, ...]:
        known = {**self.groups, **self._ids}
        return tuple(known.get(value, "masked") for value in values)

    def group(self, number: int, group: ServerGroup) -> ServerGroup:
        members = tuple(self._ids[uuid] for uuid in group.members if uuid in self._ids)
        return replace(group, name=f"group-{number}", members=members)

    def migration(self, migration: ServerMigration) -> ServerMigration:
        return replace(
            migration,
            server=self._ids.get(migration.server, ""),
            source=self._names.get(migration.source, ""),
            target=self._names.get(migration.target, ""),
        )

    def aggregate(self, number: int, aggregate: SnapshotAggregate) -> SnapshotAggregate:
        metadata = _with_keys(_KEPT_OF_AGGREGATE, aggregate.metadata) | {
            key: ",".join(self.projects.get(each.strip(), "masked") for each in value.split(","))
            for key, value in aggregate.metadata.items()
            if key.startswith(_TENANTS)
        }
        zone = self.zones[aggregate.zone]
        return SnapshotAggregate(
            name=f"aggregate-{number}",
            zone=zone,
            hosts=tuple(self._names[name] for name in aggregate.hosts if name in self._names),
            metadata={**metadata, **({"availability_zone": zone} if zone else {})},
        )


def _masked_servers(
    servers: SnapshotServers,
    ids: Mapping[str, str],
    aggregates: Mapping[str, str],
    providers: Mapping[str, tuple[str, str]],
) -> SnapshotServers:
    """Return the servers with new names and ids.

    :param ids: the new ids of consumers by the old ids.
    :param aggregates: the new ids of aggregates by the old ids.
    :param providers: the new id and the new name of a provider, by its old id and by its old name.
    """
    masks = _ServerMasks(servers, ids, {name: new for name, (_, new) in providers.items()})
    return SnapshotServers(
        servers={
            ids[uuid]: masks.server(number, server)
            for number, (uuid, server) in enumerate(servers.servers.items(), start=1)
        },
        groups={
            masks.groups[uuid]: masks.group(number, group)
            for number, (uuid, group) in enumerate(servers.groups.items(), start=1)
        },
        migrations={
            ids[uuid]: masks.migration(migration) for uuid, migration in servers.migrations.items()
        },
        aggregates={
            aggregates[uuid]: masks.aggregate(number, aggregate)
            for number, (uuid, aggregate) in enumerate(servers.aggregates.items(), start=1)
        },
        services=dict(_known(servers.services, providers)),
        types={ids[uuid]: servers.types[uuid] for uuid in servers.types.keys() & ids.keys()},
        down=tuple(dict(_known(servers.down, providers))),
        unread=servers.unread,
    )


def _renamed(
    providers: Iterable[Provider], ids: Mapping[str, str], names: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    """Return the new id and the new name of each provider by its old id and its old name."""
    return {key: (ids[p.uuid], names[p.uuid]) for p in providers for key in (p.name, p.uuid)}


def _known(
    originals: Iterable[str], providers: Mapping[str, tuple[str, str]]
) -> list[tuple[str, str]]:
    return [providers[name] for name in originals if name in providers]


def _numbered(noun: str, originals: Iterable[str]) -> dict[str, str]:
    return {old: f"{noun}-{n}" for n, old in enumerate(dict.fromkeys(originals), start=1)}


def _with_keys(beginnings: tuple[str, ...], texts: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in texts.items() if key.startswith(beginnings)}


def _ids(kind: int, originals: Iterable[str]) -> dict[str, str]:
    """Return a uuid for each id; the first digits tell ids of different kinds apart."""
    unique = dict.fromkeys(originals)
    return {name: str(UUID(int=(kind << 96) + n)) for n, name in enumerate(unique, start=1)}


def _names(providers: Iterable[Provider]) -> Mapping[str, str]:
    """Return the new name of each provider; a name tells the host and the number in its tree."""
    return {
        provider.uuid: f"host-{host}" + (f"-provider-{number}" if number else "")
        for host, tree in enumerate(ProviderIndex(providers).trees().values(), start=1)
        for number, provider in enumerate(tree)
    }


def masked_flavor(flavor: Flavor, name: str) -> Flavor:
    """Return a flavor with another name, without the extra specs that may have names."""
    sizes = flavor._asdict() | {"name": name}
    specs = {key: value for key, value in flavor.extra_specs.items() if key.startswith(_KEPT)}
    return Flavor(**sizes | {"extra_specs": specs})
