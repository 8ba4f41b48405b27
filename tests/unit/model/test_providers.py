"""The root of each provider, and the resource classes of which too much is allocated."""

from collections.abc import Mapping

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.model.providers import Excess, Provider, ProviderIndex


def providers(parents: Mapping[str, str | None]) -> ProviderIndex:
    return ProviderIndex(
        Provider(uuid=u, name=f"name of {u}", parent=p) for u, p in parents.items()
    )


def test_the_root_is_above_all_parents() -> None:
    cloud = providers({"pages": "node", "node": "host", "host": None, "pool": None})
    roots = {"pages": "host", "node": "host", "host": "host", "pool": "pool"}
    assert cloud.roots == roots
    assert cloud.root("pages").name == "name of host"
    trees = {root: [each.uuid for each in tree] for root, tree in cloud.trees().items()}
    assert trees == {"host": ["host", "pages", "node"], "pool": ["pool"]}
    assert list(cloud.lineage("pages")) == ["pages", "node", "host"]


def test_a_parent_that_is_not_listed_ends_the_way() -> None:
    cloud = providers({"pages": "node", "node": "elsewhere"})
    assert cloud.roots == {"pages": "node", "node": "node"}
    assert list(cloud.lineage("pages")) == ["pages", "node"]
    assert (cloud.name("pages"), cloud.name("elsewhere")) == ("name of pages", "elsewhere")


def test_a_cycle_of_parents_ends() -> None:
    cloud = providers({"a": "b", "b": "c", "c": "a"})
    assert cloud.roots == {"a": "c", "b": "c", "c": "c"}
    assert list(cloud.lineage("a")) == ["a", "b", "c"]
    assert providers({"a": "a", "b": "a"}).roots == {"a": "a", "b": "a"}


def test_a_long_chain() -> None:
    chain = {str(n): str(n - 1) if n else None for n in range(100_000)}
    assert set(providers(chain).roots.values()) == {"0"}


INVENTORIES = {
    # (10 - 2) x 1.5 = 12
    "VCPU": Inventory(total=10, reserved=2, max_unit=10, allocation_ratio=1.5),
    "MEMORY_MB": Inventory(total=1024, max_unit=1024),
}


@pytest.mark.parametrize(
    ("used", "excesses"),
    [
        pytest.param({"VCPU": 12, "MEMORY_MB": 1024}, [], id="full is no excess"),
        pytest.param({"VCPU": 13}, [Excess("c", "VCPU", 13, 12)], id="13 of 12"),
        pytest.param({"PCPU": 1}, [], id="a class without an inventory"),
        pytest.param(
            {"VCPU": 99, "MEMORY_MB": 1025},
            [Excess("c", "MEMORY_MB", 1025, 1024), Excess("c", "VCPU", 99, 12)],
            id="two classes, by name",
        ),
    ],
)
def test_excesses(used: dict[str, int], excesses: list[Excess]) -> None:
    assert Provider(uuid="u", name="c", inventories=INVENTORIES, used=used).excesses() == excesses


@pytest.mark.parametrize(
    ("name", "amount", "has_room"),
    [
        pytest.param("VCPU", 5, True, id="5 of 12 - 7"),
        pytest.param("VCPU", 6, False, id="6 of 12 - 7"),
        pytest.param("MEMORY_MB", 1025, False, id="more than max_unit"),
        pytest.param("PCPU", 1, False, id="a class without an inventory"),
    ],
)
def test_room(name: str, amount: int, has_room: bool) -> None:
    provider = Provider(uuid="u", name="c", inventories=INVENTORIES, used={"VCPU": 7})
    assert provider.has_room(name, amount) == has_room


def test_the_text() -> None:
    assert str(Excess("compute1", "VCPU", 13, 12)) == "13 of 12 VCPU of provider compute1"
