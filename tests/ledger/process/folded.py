"""Shows Nova's own tests the hosts of Placement without the providers of NUMA nodes and pages.

The tests count the providers of a host, and read amounts from its root provider. Without this,
most of them would end at the first such look, and what comes after the look would not be seen.
"""

import re
from collections.abc import Iterable
from typing import Any

from nova.tests.functional.fixtures import PlacementApiClient

NODE = re.compile(r"_NUMA\d+(_PAGES_\d+)?$")
"""Ends the names of the providers of NUMA nodes and of their pages (docs/admin/numa.rst)."""

SUMMED = ("total", "reserved", "max_unit")
"""The numbers of an inventory that are summed; the others are equal, or those of the first."""

_read = PlacementApiClient.get


def fold_nodes() -> None:
    """Have tests read the amounts of NUMA nodes and pages from the root provider."""
    PlacementApiClient.get = get


def get(client: Any, url: str, **kwargs: Any) -> Any:
    """Read from Placement, as ``PlacementApiClient.get``, with the providers of nodes folded."""
    response = _read(client, url, **kwargs)
    if response.status >= 400:
        return response
    body, path = response.body, url.partition("?")[0].strip("/").split("/")
    match path:
        case ["resource_providers"]:
            kept = [each for each in body["resource_providers"] if not is_node(each)]
            body["resource_providers"] = kept
        case ["resource_providers", uuid, what] if what in ADDITIONS:
            for each in of_nodes(client, uuid, what, kwargs):
                ADDITIONS[what](body[what], each)
        case ["allocations", _]:
            body["allocations"] = folded(client, body["allocations"])
    return response


def is_node(provider: dict[str, Any]) -> bool:
    """Tell whether a provider is a NUMA node or the pages of a node."""
    return NODE.search(provider["name"]) is not None


def of_nodes(client: Any, root: str, what: str, kwargs: Any) -> Iterable[Any]:
    """Yield what Placement has of each NUMA node and its pages below a root provider."""
    tree = _read(client, f"/resource_providers?in_tree={root}", version="1.20").body
    for provider in tree["resource_providers"]:
        if is_node(provider) and provider["root_provider_uuid"] == root:
            path = f"/resource_providers/{provider['uuid']}/{what}"
            yield _read(client, path, **kwargs).body[what]


def folded(client: Any, allocations: dict[str, Any]) -> dict[str, Any]:
    """Return the allocations of a consumer by provider, those of nodes by their root."""
    of_roots: dict[str, Any] = {}
    for uuid, held in allocations.items():
        provider = _read(client, f"/resource_providers/{uuid}", version="1.20").body
        root = provider["root_provider_uuid"] if is_node(provider) else uuid
        add_allocations(of_roots, {root: held})
    return of_roots


def add(amounts: dict[str, int], others: dict[str, int]) -> None:
    """Add amounts by resource class to other amounts."""
    for name, amount in others.items():
        amounts[name] = amounts.get(name, 0) + amount


def add_allocations(allocations: dict[str, Any], others: dict[str, Any]) -> None:
    """Add allocations by consumer or provider to other allocations."""
    for key, held in others.items():
        add(allocations.setdefault(key, {**held, "resources": {}})["resources"], held["resources"])


def add_inventories(inventories: dict[str, Any], others: dict[str, Any]) -> None:
    """Add inventories by resource class to other inventories."""
    for name, inventory in others.items():
        summed = inventories.setdefault(name, {**inventory, **dict.fromkeys(SUMMED, 0)})
        add(summed, {number: inventory[number] for number in SUMMED})


ADDITIONS = {"usages": add, "inventories": add_inventories, "allocations": add_allocations}
"""What a root provider has of its nodes, by the end of the path, and how it is added up."""
