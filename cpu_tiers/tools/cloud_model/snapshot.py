"""A snapshot of a cloud as a JSON document: providers, allocations and flavors.

``cpu-tiers cloud snapshot`` writes the document, and :meth:`Snapshot.parse` reads it with every
fault and its place. A snapshot that leaves the company is masked first. Pure.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from cpu_tiers.errors import FaultList
from cpu_tiers.model.document import DocumentPlace
from cpu_tiers.model.flavor import SIZES, Flavor
from cpu_tiers.model.inventory import MAX_RATIO, Inventory
from cpu_tiers.model.names import COMPUTE_NODE, MAX_AMOUNT
from cpu_tiers.model.providers import Provider, ProviderIndex
from cpu_tiers.placement.records import inventory_json, read_inventory
from cpu_tiers.tools.cloud_model.cloud import Allocations, SimulatedCloud
from cpu_tiers.tools.cloud_model.providers import without_servers
from cpu_tiers.tools.cloud_model.servers_document import SERVERS, read_servers, servers_json
from cpu_tiers.tools.cloud_model.service_states import (
    ComputeService,
    ServiceStates,
    service_states,
)
from cpu_tiers.tools.cloud_model.snapshot_servers import SnapshotServers

FORMAT = "cpu-tiers cloud snapshot"
VERSION = 3
_VERSIONS = (1, 2, VERSION)
"""Version 1 has no servers, and version 2 does not say where and what they are."""
_KEYS = (
    *("format", "version", "taken", "masked", "providers", "consumers", "flavors", "traits"),
    *SERVERS,
)
_MOST_ABOVE = 64
"""Trees of Nova, Neutron and Cyborg have 4 levels; Placement has no bound."""


_LEAST = {"total": 1, "reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A cloud at a moment.

    :param consumers: the allocations of servers, migrations and others, by the consumer's uuid.
    :param is_masked: whether names and ids are replaced
        (:func:`~cpu_tiers.tools.cloud_model.masking.masked`).
    :param servers: the servers with names, flavors, states and groups; ``None`` if the document
        does not have them, as in version 1.
    :param taken: when the cloud was read, in UTC; ``None`` if the document does not say so.
    :param traits: the custom traits that Placement knows, also those of no provider; ``None`` if
        the document does not say so.
    """

    providers: tuple[Provider, ...]
    consumers: Mapping[str, Allocations]
    flavors: tuple[Flavor, ...] = ()
    is_masked: bool = False
    taken: datetime | None = None
    servers: SnapshotServers | None = None
    traits: frozenset[str] | None = None

    def cloud(self, *, is_empty: bool = False) -> SimulatedCloud:
        """Return the cloud of the snapshot.

        :param is_empty: leave out the allocations.
        """
        return SimulatedCloud(map(_emptied, self.providers) if is_empty else self.used_providers())

    def service_states(self) -> ServiceStates:
        """Return what Nova said of the nova-compute services; disabled hosts have a trait."""
        if self.servers is None:
            return ServiceStates(unknown="the snapshot does not say which hosts are up")
        services = [
            ComputeService(
                host, is_up=root not in self.servers.down, is_enabled=True, nodes=(root,)
            )
            for root, host in self.servers.services.items()
        ]
        hosts = {p.uuid: p.name for p in self.providers if COMPUTE_NODE in p.traits}
        return service_states(hosts, services)

    def used_providers(self) -> Iterator[Provider]:
        """Yield the providers with the allocated amounts of all consumers."""
        used: dict[str, dict[str, int]] = {}
        for allocations in self.consumers.values():
            for uuid, amounts in allocations.items():
                sums = used.setdefault(uuid, {})
                for name, amount in amounts.items():  # a Counter takes three times as long
                    sums[name] = sums.get(name, 0) + amount
        return (replace(p, used=used.get(p.uuid, {})) for p in self.providers)

    def _consumers_on(self, kept: Collection[str]) -> dict[str, Mapping[str, Mapping[str, int]]]:
        """Return the allocations of consumers on some providers, without empty allocations."""
        return {
            consumer: held
            for consumer, allocations in self.consumers.items()
            if (held := {uuid: allocations[uuid] for uuid in allocations if uuid in kept})
        }

    def without_trees(self, roots: Collection[str]) -> "tuple[Snapshot, tuple[str, ...]]":
        """Return the snapshot without some provider trees, and the names of their roots.

        :param roots: the uuids of the root providers.
        """
        if not roots:
            return self, ()
        trees = ProviderIndex(self.providers)
        kept = {uuid for uuid in trees.by_id if trees.roots[uuid] not in roots}
        names = sorted(trees.name(uuid) for uuid in roots if uuid in trees.by_id)
        smaller = replace(
            self,
            providers=tuple(each for each in self.providers if each.uuid in kept),
            consumers=self._consumers_on(kept),
        )
        return smaller, tuple(names)

    def to_json(self) -> dict[str, object]:
        """Return the document."""
        return {
            "format": FORMAT,
            "version": VERSION,
            **({"taken": _text_of(self.taken)} if self.taken else {}),
            "masked": self.is_masked,
            "providers": [_provider_json(provider) for provider in self.providers],
            "consumers": {uuid: dict(held) for uuid, held in self.consumers.items()},
            "flavors": list(map(_flavor_json, self.flavors)),
            **({} if self.traits is None else {"traits": sorted(self.traits)}),
            **(servers_json(self.servers, _flavor_json) if self.servers else {}),
        }

    @classmethod
    def parse(cls, body: object, *, where: str) -> "Snapshot":
        """Check a document and return the snapshot.

        :param where: the name of the document in an error message.
        :raises InvalidInput: with every fault and its place.
        """
        faults = FaultList()
        at = _Place(where, faults)
        document = at.of(body, dict)
        faults.raise_if_any()
        _check_version(where, document.get("format"), document.get("version"), faults)
        faults.raise_if_any()
        at.check_keys(document, _KEYS)
        providers = tuple(_providers(at / "providers", at.get(document, "providers", list)))
        snapshot = cls(
            providers=providers,
            consumers=_consumers(at, at.get(document, "consumers", dict), providers),
            flavors=tuple(_flavors(at / "flavors", at.get(document, "flavors", list))),
            is_masked=document.get("masked") is True,
            taken=at.time(document, "taken") if "taken" in document else None,
            servers=read_servers(at, document, _server_flavors(at, document))
            if "servers" in document
            else None,
            traits=at.texts(document, "traits") if "traits" in document else None,
        )
        faults.raise_if_any()
        return snapshot


def _emptied(provider: Provider) -> Provider:
    inventories = provider.inventories.items()
    return replace(
        provider, inventories={name: without_servers(name, each) for name, each in inventories}
    )


def _text_of(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")


def _check_version(where: str, kind: object, version: object, faults: FaultList) -> None:
    if kind != FORMAT:
        faults.add(where, f"format {str(kind)[:60]!r}", f"give a file of {FORMAT}")
    elif type(version) is int and version > VERSION:
        faults.add(
            where,
            f"a snapshot of version {str(version)[:60]}, newer than version {VERSION}",
            "read the snapshot with the release of cpu-tiers that wrote it",
        )
    elif type(version) is not int or version not in _VERSIONS:
        faults.add(
            where,
            f"a snapshot of version {str(version)[:60]}, not {VERSION}",
            f"write a new snapshot with {FORMAT}",
        )


class _Place(DocumentPlace):
    """A place in a snapshot."""

    def text(self, body: Mapping[str, Any], key: str) -> str:
        """Return the text of a key, which may not be missing or empty."""
        value = body.get(key)
        if isinstance(value, str) and value:
            return value
        (self / key).wrong(value, "give a text")
        return ""

    def texts(self, body: Mapping[str, Any], key: str) -> frozenset[str]:
        values = self.get(body, key, list)
        if all(type(value) is str for value in values):
            return frozenset(values)
        return frozenset((self / key).of(value, str) for value in values)

    def amounts(self, body: Mapping[str, Any]) -> dict[str, int]:
        """Return the amounts of an object, each at least 1."""
        if _are_amounts(body):
            return dict(body)
        return {name: (self / name).amount(amount, 1) for name, amount in body.items()}

    def time(self, body: Mapping[str, Any], key: str) -> datetime | None:
        """Return the time of a key in UTC."""
        try:
            time = datetime.fromisoformat(body[key])
            if time.tzinfo is not None:
                return time.astimezone(UTC)
        except (TypeError, ValueError, OverflowError):  # the year would be 0 or 10000
            pass
        (self / key).wrong(body[key], "give a time as 2026-11-23T08:00:00Z")
        return None


def _providers(at: _Place, bodies: Iterable[object]) -> Iterable[Provider]:
    states: dict[str, Provider] = {}
    names = set[str]()
    known: dict[str, Inventory] = {}
    for number, body in enumerate(bodies):
        place = at / number
        provider = place.of(body, dict)
        if provider is body:
            state = _provider(place, provider, known)
            if state.uuid in states:
                (place / "uuid").wrong(state.uuid, "name each provider once")
            if state.name in names:
                (place / "name").wrong(state.name, "give each provider a name of its own")
            names.add(state.name)
            states[state.uuid] = state
    trees = ProviderIndex(states.values())
    for uuid in states:
        way = list(islice(trees.lineage(uuid), _MOST_ABOVE + 2))
        if len(way) > _MOST_ABOVE + 1:
            allowed = f"a provider has at most {_MOST_ABOVE} providers above"
            (at / uuid / "parent_uuid").wrong(way[-1], allowed)
        elif (parent := states[way[-1]].parent) is not None:
            place = at / uuid / "parent_uuid"
            place.wrong(parent, "name a provider of this document that is not below the provider")
    return states.values()


def _provider(at: _Place, body: Mapping[str, Any], known: dict[str, Inventory]) -> Provider:
    """Return the provider of an object.

    :param known: the correct inventories so far: most hosts have equal inventories.
    """
    parent = body.get("parent_uuid")
    return Provider(
        uuid=at.text(body, "uuid"),
        name=at.text(body, "name"),
        parent=None if parent is None else (at / "parent_uuid").of(parent, str),
        inventories={
            name: known.get(repr(inventory))
            or _inventory(at / "inventories" / name, inventory, known)
            for name, inventory in at.get(body, "inventories", dict).items()
        },
        traits=at.texts(body, "traits"),
        aggregates=at.texts(body, "aggregates"),
    )


def _inventory(at: _Place, body: object, known: dict[str, Inventory]) -> Inventory:
    faults = len(at.faults.faults)
    inventory = at.of(body, dict)
    if inventory is not body:
        return Inventory(total=1, max_unit=1)
    ratio = inventory.get("allocation_ratio")
    # isinstance(True, int) is true
    if isinstance(ratio, bool) or not isinstance(ratio, int | float) or not 0 < ratio <= MAX_RATIO:
        (at / "allocation_ratio").wrong(ratio, f"give a number above 0 and up to {MAX_RATIO}")
        ratio = 1.0

    amounts = {key: (at / key).amount(inventory.get(key), _LEAST[key]) for key in _LEAST}
    result = read_inventory({**amounts, "allocation_ratio": ratio})
    if len(at.faults.faults) == faults:
        known[repr(body)] = result
    return result


def _consumers(
    at: _Place, bodies: Mapping[str, object], providers: Iterable[Provider]
) -> Mapping[str, Allocations]:
    known = {provider.uuid for provider in providers}
    consumers: dict[str, Allocations] = {}
    for consumer, body in bodies.items():
        if isinstance(body, dict) and _are_allocations(body, known):
            consumers[consumer] = body
            continue
        allocations: dict[str, dict[str, int]] = {}
        for uuid, amounts in (at / f"consumers {consumer}").of(body, dict).items():
            place = at / f"consumers {consumer}" / uuid
            if uuid not in known:
                place.wrong(uuid, "name a provider of this document")
            allocations[uuid] = place.amounts(place.of(amounts, dict))
        consumers[consumer] = allocations
    return consumers


def _are_allocations(body: Mapping[str, object], known: Collection[str]) -> bool:
    """Tell whether an object is without faults, as nearly all consumers are."""
    return all(
        uuid in known and isinstance(amounts, dict) and _are_amounts(amounts)
        for uuid, amounts in body.items()
    )


def _are_amounts(body: Mapping[str, object]) -> bool:
    # isinstance(True, int) is true
    return all(type(amount) is int and 1 <= amount <= MAX_AMOUNT for amount in body.values())


def _flavors(at: _Place, bodies: Iterable[object]) -> Iterable[Flavor]:
    for number, body in enumerate(bodies):
        place = at / number
        flavor = place.of(body, dict)
        if flavor is not body:
            continue
        specs = place.get(flavor, "extra_specs", dict)
        for key, value in specs.items():
            (place / "extra_specs" / key).of(value, str)
        name = place.text(flavor, "name")
        sizes = {size: flavor.get(size, least) for size, least in SIZES.items()}
        with at.faults:
            yield Flavor(name=name, **sizes, extra_specs=specs)


def _server_flavors(at: _Place, document: Mapping[str, Any]) -> Sequence[Flavor]:
    return tuple(_flavors(at / "server_flavors", at.get(document, "server_flavors", list)))


def _flavor_json(flavor: Flavor) -> dict[str, object]:
    sizes = {size: getattr(flavor, size) for size in SIZES}
    return {"name": flavor.name, **sizes, "extra_specs": dict(flavor.extra_specs)}


def _provider_json(provider: Provider) -> dict[str, object]:
    return {
        "uuid": provider.uuid,
        "name": provider.name,
        "parent_uuid": provider.parent,
        "inventories": {
            name: inventory_json(inventory) for name, inventory in provider.inventories.items()
        },
        "traits": sorted(provider.traits),
        "aggregates": sorted(provider.aggregates),
    }
