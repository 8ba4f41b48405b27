"""Resources of which Placement has allocated more than the capacity of a provider."""

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Excess, Provider
from cpu_tiers.nova.no_answer import NO_ANSWER, read
from cpu_tiers.nova.protocols import ReportClient

VERSION = "1.28"
"""The microversion of Nova's ``get_allocs_for_consumer``, whose answer is sent back."""

FAILED = (*NO_ANSWER, ArithmeticError)
"""Placement does not answer, or answers with other JSON, such as an infinite ratio."""


def excesses_of(
    client: ReportClient, context: Any, claimed: Mapping[str, Iterable[str]]
) -> Iterator[Excess]:
    """Yield the excesses of providers, with two requests for each provider.

    :param claimed: the resource classes to look at, by the uuid of the provider.
    """
    ask = functools.partial(read, client, context, version=VERSION)
    for provider, classes in claimed.items():
        used = ask(f"/resource_providers/{provider}/usages")["usages"]
        inventories = ask(f"/resource_providers/{provider}/inventories")["inventories"]
        by_class = {name: _inventory(inventories[name]) for name in classes}
        yield from Provider(
            uuid=provider, name=provider, inventories=by_class, used=used
        ).excesses()


def _inventory(body: Mapping[str, Any]) -> Inventory:
    names = ("total", "reserved", "max_unit", "allocation_ratio")
    return Inventory(**{name: body[name] for name in names})
