"""The providers of a cloud, and the allocations of their consumers, from Placement's database.

Eight statements read all of one moment. For 10,000 hosts, Placement's API needs 110,000 requests,
because it tells inventories and allocations only in a request for each provider.

Source: Placement, ``placement/db/sqlalchemy/models.py``, equal in the releases 13 to 16.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import sqlalchemy as sa

from cpu_tiers.accounting.holdings import ConsumerId, Portion
from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.names import is_custom
from cpu_tiers.model.providers import Provider
from cpu_tiers.placement.records import AMOUNTS, INSTANCE, Consumer, read_inventory
from cpu_tiers.tools.cloud_model.snapshot import Snapshot
from cpu_tiers.tools.database.connection import Reader, Schema, table
from cpu_tiers.tools.placement.cloud_reader import snapshot_of

SCHEMA = Schema("Placement", "Placement 13 to 16", frozenset({"a082b8bb98d0"}))

_CLASSES = table("resource_classes", "id", "name")
_TRAITS = table("traits", "id", "name")
_PROVIDERS = table("resource_providers", "id", "uuid", "name", "parent_provider_id")
_INVENTORIES = table("inventories", "resource_provider_id", "resource_class_id", *AMOUNTS)
_TRAITS_OF = table("resource_provider_traits", "resource_provider_id", "trait_id")
_AGGREGATES = table("placement_aggregates", "id", "uuid")
_AGGREGATES_OF = table("resource_provider_aggregates", "resource_provider_id", "aggregate_id")
_ALLOCATIONS = table(
    "allocations", "resource_provider_id", "consumer_id", "resource_class_id", "used"
)
_CONSUMERS = table("consumers", "uuid", "consumer_type_id")
_TYPES = table("consumer_types", "id", "name")


def read_placement(reader: Reader) -> Snapshot:
    """Return all providers, and the allocations of each consumer.

    :raises DatabaseUnavailable: the database does not answer, or has other tables.
    """
    classes, traits, aggregates = (
        {number: sys.intern(name) for number, name in reader.rows(sa.select(names))}
        for names in (_CLASSES, _TRAITS, _AGGREGATES)
    )
    records = list(reader.rows(sa.select(_PROVIDERS)))
    uuids = {number: uuid for number, uuid, *_ in records}
    inventories = _inventories(reader, classes)
    traits_of = _names(reader, _TRAITS_OF, traits)
    aggregates_of = _names(reader, _AGGREGATES_OF, aggregates)
    states = {
        uuid: Provider(
            uuid=uuid,
            name=name,
            parent=uuids.get(parent),
            inventories=inventories.get(number, {}),
            traits=traits_of.get(number, frozenset()),
            aggregates=aggregates_of.get(number, frozenset()),
        )
        for number, uuid, name, parent in records
    }
    held: dict[str, dict[ConsumerId, dict[str, int]]] = {uuid: {} for uuid in states}
    for number, consumer, class_number, used in reader.rows(sa.select(_ALLOCATIONS)):
        if number in uuids:
            of_provider = held[uuids[number]]
            of_provider.setdefault(consumer, {})[classes[class_number]] = used
    custom = frozenset(filter(is_custom, traits.values()))
    return replace(snapshot_of(states, held), traits=custom)


def _inventories(
    reader: Reader, classes: Mapping[int, str]
) -> Mapping[int, Mapping[str, Inventory]]:
    """Return the inventories of each provider by the provider's number; equal ones are kept once.

    A row has an inventory, and those of a thousand providers that have it: most hosts are equal.
    """
    inventories: dict[int, dict[str, Inventory]] = defaultdict(dict)
    once = cache(lambda *amounts: read_inventory(dict(zip(AMOUNTS, amounts, strict=True))))
    provider, *inventory = _INVENTORIES.c
    thousand = sa.type_coerce(provider, sa.Integer) // 1000
    query = sa.select(reader.joined(provider), *inventory).group_by(*inventory, thousand)
    for numbers, class_number, *amounts in reader.joined_rows(query):
        for number in map(int, numbers.split(",")):
            inventories[number][classes[class_number]] = once(*amounts)
    return inventories


def _names(
    reader: Reader, members: sa.TableClause, names: Mapping[int, str]
) -> dict[int, frozenset[str]]:
    """Return the names of each provider by the provider's number; equal sets are kept once.

    A row has all numbers of a provider, because a row takes the drivers long.
    """
    provider, member = members.c
    query = sa.select(provider, reader.joined(member)).group_by(provider)
    once = cache(lambda given: frozenset(names[int(number)] for number in given.split(",")))
    return {number: once(given) for number, given in reader.joined_rows(query)}


def read_consumer(reader: Reader, uuid: str) -> Consumer:
    """Return the allocations of a consumer, and its type, without the rest."""
    allocations: dict[str, dict[str, int]] = {}
    query = (
        sa.select(_PROVIDERS.c.uuid, _CLASSES.c.name, _ALLOCATIONS.c.used)
        .join_from(
            _ALLOCATIONS, _PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id
        )
        .join(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
        .where(_ALLOCATIONS.c.consumer_id == uuid)
    )
    for provider, name, used in reader.rows(query):
        allocations.setdefault(provider, {})[name] = used
    types = reader.rows(
        sa.select(_TYPES.c.name)
        .join_from(_CONSUMERS, _TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
        .where(_CONSUMERS.c.uuid == uuid)
    )
    kind = next((name for (name,) in types), INSTANCE)  # as of a consumer of an old Placement
    return Consumer(uuid=uuid, allocations=Portion.by_id(allocations), consumer_type=kind)
