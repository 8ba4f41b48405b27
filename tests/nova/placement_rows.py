"""The rows of Placement's database that a report to Placement changes."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from placement import db_api

Rows = frozenset[tuple[Any, ...]]

_INVENTORIES = """
    SELECT p.name, c.name, i.total, i.reserved, i.min_unit, i.max_unit, i.step_size,
           i.allocation_ratio
    FROM inventories i JOIN resource_providers p ON p.id = i.resource_provider_id
    JOIN resource_classes c ON c.id = i.resource_class_id"""
_ALLOCATIONS = """
    SELECT a.consumer_id, p.name, c.name, a.used
    FROM allocations a JOIN resource_providers p ON p.id = a.resource_provider_id
    JOIN resource_classes c ON c.id = a.resource_class_id"""
_TRAITS = """
    SELECT p.name, t.name
    FROM resource_provider_traits h JOIN resource_providers p ON p.id = h.resource_provider_id
    JOIN traits t ON t.id = h.trait_id"""

_PROVIDERS = """
    SELECT p.name, parent.name
    FROM resource_providers p LEFT JOIN resource_providers parent
    ON parent.id = p.parent_provider_id"""


@dataclass(frozen=True, slots=True)
class PlacementRows:
    """Providers, inventories, allocations and traits by names, without generations."""

    inventories: Rows
    allocations: Rows
    traits: Rows
    providers: Rows


def placement_rows() -> PlacementRows:
    """Return what Placement's database in this process has now."""
    connection = db_api.get_placement_engine().raw_connection()
    try:
        return read_rows(lambda query: connection.driver_connection.execute(query).fetchall())
    finally:
        connection.close()


def read_rows(query: Callable[[str], Iterable[Any]]) -> PlacementRows:
    """Return what a database of Placement has now.

    :param query: returns the rows of a SELECT statement.
    """
    queries = (_INVENTORIES, _ALLOCATIONS, _TRAITS, _PROVIDERS)
    return PlacementRows(*(frozenset(map(tuple, query(text))) for text in queries))
