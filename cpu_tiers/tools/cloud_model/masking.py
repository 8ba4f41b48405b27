"""A snapshot with other names and ids, which gives equal simulations. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from uuid import UUID

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServers

_KEPT = ("hw:", "resources", "required", "trait", "quota:", "group_policy", "same_subtree")
"""How the keys begin of the extra specs that a masked flavor keeps."""


def masked(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with new names and ids; equal names stay equal everywhere.

    A masked snapshot gives equal simulations: amounts, resource classes, traits, and the extra
    specs that decide about hosts are kept. Hosts, aggregates, consumers and flavors are numbered
    in the order of the snapshot.
    """
    providers = snapshot.providers
    ids = _ids(1, (provider.uuid for provider in providers))
    aggregates = _ids(2, (name for p in providers for name in sorted(p.aggregates)))
    servers = snapshot.servers
    consumers = _ids(3, [*snapshot.consumers, *(servers.servers if servers else ())])
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
        servers=None if servers is None else _masked_servers(servers, consumers, ids),
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


def _masked_servers(
    servers: SnapshotServers, ids: Mapping[str, str], providers: Mapping[str, str]
) -> SnapshotServers:
    numbers: dict[str, int] = {}
    flavors = []
    for server in servers.servers.values():
        flavor = server.flavor or Flavor(name="unknown", vcpus=1, memory_mb=1)
        number = numbers.setdefault(repr(flavor), len(numbers) + 1)
        flavors.append(masked_flavor(flavor, f"server-flavor-{number}"))
    return servers.masked(ids, _ids(4, servers.groups), flavors, providers)


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
