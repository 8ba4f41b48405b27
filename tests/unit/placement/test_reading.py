"""The root of a provider in an answer of Placement."""

from cpu_tiers.accounting.holdings import ProviderId, ProviderName
from cpu_tiers.placement.reading import root_of
from cpu_tiers.placement.records import Provider


def providers(**parents: str | None) -> dict[ProviderId, Provider]:
    return {
        ProviderId(uuid): Provider(
            uuid=ProviderId(uuid),
            name=ProviderName(uuid),
            parent_uuid=None if parent is None else ProviderId(parent),
        )
        for uuid, parent in parents.items()
    }


def root(uuid: str, **parents: str | None) -> str:
    found = providers(**parents)
    return root_of(found[ProviderId(uuid)], found)


def test_the_root_is_above_all_parents() -> None:
    assert root("pages", pages="node", node="host", host=None) == "host"


def test_a_parent_that_is_not_listed_ends_the_way() -> None:
    assert root("pages", pages="node", node="elsewhere") == "node"


def test_a_cycle_of_parents_ends() -> None:
    assert root("a", a="b", b="c", c="a") == "c"
    assert root("a", a="a") == "a"
