"""The roots of providers, by the parents in an answer of Placement."""

from cpu_tiers.model.providers import roots_of


def test_the_root_is_above_all_parents() -> None:
    parents = {"pages": "node", "node": "host", "host": None, "pool": None}
    assert roots_of(parents) == {"pages": "host", "node": "host", "host": "host", "pool": "pool"}


def test_a_parent_that_is_not_listed_ends_the_way() -> None:
    assert roots_of({"pages": "node", "node": "elsewhere"}) == {"pages": "node", "node": "node"}


def test_a_cycle_of_parents_ends() -> None:
    assert roots_of({"a": "b", "b": "c", "c": "a"}) == {"a": "c", "b": "c", "c": "c"}
    assert roots_of({"a": "a", "b": "a"}) == {"a": "a", "b": "a"}


def test_a_long_chain() -> None:
    assert set(roots_of({n: n - 1 if n else None for n in range(100_000)}).values()) == {0}
