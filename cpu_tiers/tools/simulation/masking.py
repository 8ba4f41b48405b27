"""Replaces the names and the ids of a snapshot that leaves the company.

A masked snapshot simulates the same: amounts, resource classes, traits, and the extra specs that
decide about hosts are kept. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from uuid import UUID

from cpu_tiers.model.flavor import Flavor
from cpu_tiers.model.providers import roots_of
from cpu_tiers.tools.simulation.provider import CloudProvider
from cpu_tiers.tools.simulation.snapshot import Snapshot

_KEPT = ("hw:", "resources", "required", "trait", "quota:", "group_policy", "same_subtree")
"""How the keys begin of the extra specs that a masked flavor keeps."""


def masked(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot with other names and ids; equal names stay equal everywhere.

    Hosts, aggregates, consumers and flavors are numbered in the order of the snapshot.
    """
    providers = snapshot.providers
    ids = _ids(1, (provider.uuid for provider in providers))
    aggregates = _ids(2, (name for p in providers for name in sorted(p.aggregates)))
    consumers = _ids(3, snapshot.consumers)
    names = _names(providers)
    return Snapshot(
        providers=tuple(
            replace(
                provider,
                uuid=ids[provider.uuid],
                name=names[provider.uuid],
                parent=None if provider.parent is None else ids[provider.parent],
                aggregates=frozenset(aggregates[name] for name in provider.aggregates),
            )
            for provider in providers
        ),
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
    )


def _ids(kind: int, originals: Iterable[str]) -> dict[str, str]:
    """Return a uuid for each id; the first digits tell ids of different kinds apart."""
    unique = dict.fromkeys(originals)
    return {name: str(UUID(int=(kind << 96) + n)) for n, name in enumerate(unique, start=1)}


def _names(providers: Iterable[CloudProvider]) -> Mapping[str, str]:
    """Return the new name of each provider; a name tells the host and the number in its tree."""
    trees: dict[str, Iterator[str]] = {}
    names = {}
    for uuid, root in roots_of({p.uuid: p.parent for p in providers}).items():
        numbers = trees.setdefault(root, _numbered(f"host-{len(trees) + 1}"))
        names[uuid] = next(numbers)
    return names


def _numbered(host: str) -> Iterator[str]:
    yield host
    number = 0
    while True:
        number += 1
        yield f"{host}-provider-{number}"


def masked_flavor(flavor: Flavor, name: str) -> Flavor:
    """Return a flavor with another name, without the extra specs that may have names."""
    sizes = flavor._asdict() | {"name": name}
    specs = {key: value for key, value in flavor.extra_specs.items() if key.startswith(_KEPT)}
    return Flavor(**sizes | {"extra_specs": specs})
