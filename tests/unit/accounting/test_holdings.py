import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpu_tiers.accounting.holdings import (
    ConsumerId,
    Holdings,
    Portion,
    ProviderId,
    ProviderName,
    sum_portions,
)

NODES = Portion.by_name({"n0": {"VCPU": 1, "MEMORY_MB": 5}, "n1": {"VCPU": 2, "PCPU": 1}})


@pytest.mark.parametrize(
    ("left", "right", "together"),
    [
        pytest.param({"n0": {"VCPU": 1}}, {"n0": {"VCPU": 2}}, {"n0": {"VCPU": 3}}, id="1 + 2"),
        pytest.param(
            {"n0": {"VCPU": 1}},
            {"n0": {"PCPU": 3}, "n1": {"VCPU": 4}},
            {"n0": {"VCPU": 1, "PCPU": 3}, "n1": {"VCPU": 4}},
            id="other classes and other providers stay apart",
        ),
        pytest.param({"n0": {"VCPU": 1}}, {}, {"n0": {"VCPU": 1}}, id="nothing is added"),
        pytest.param({"n": {"X": 2**31 - 1}}, {"n": {"X": 1}}, {"n": {"X": 2**31}}, id="huge"),
    ],
)
def test_portions_add_up_by_provider_and_class(
    left: dict[str, dict[str, int]],
    right: dict[str, dict[str, int]],
    together: dict[str, dict[str, int]],
) -> None:
    assert Portion.by_name(left) + Portion.by_name(right) == together


@pytest.mark.parametrize(
    ("wanted", "held", "missing"),
    [
        pytest.param(10, 4, {"n0": {"VCPU": 6}}, id="10 - 4"),
        pytest.param(4, 4, {}, id="4 - 4: nothing, not 0"),
        pytest.param(4, 10, {}, id="4 - 10: never negative"),
    ],
)
def test_a_difference_is_the_excess_of_the_first_portion(
    wanted: int, held: int, missing: dict[str, dict[str, int]]
) -> None:
    others = {"n1": {"VCPU": 7}, "n0": {"VCPU": held, "PCPU": 7}}  # of no concern
    assert Portion.by_name({"n0": {"VCPU": wanted}}) - Portion.by_name(others) == missing


@pytest.mark.parametrize("amounts", [{}, {"n0": {}}, {"n0": {"VCPU": 0}, "n1": {}}])
def test_empty_amounts_are_equal_portions(amounts: dict[str, dict[str, int]]) -> None:
    empty = Portion.by_name(amounts)
    assert not empty
    assert empty == Portion.by_name({}) == {}
    assert hash(empty) == hash(Portion.by_name({}))
    assert Holdings({ConsumerId("a"): empty}) == {}


def test_a_portion_by_class_by_provider_and_by_provider_id() -> None:
    assert NODES.total == {"VCPU": 3, "PCPU": 1, "MEMORY_MB": 5}  # VCPU: 1 + 2
    assert NODES.of(ProviderName("n1")) == {"VCPU": 2, "PCPU": 1}
    assert NODES.of(ProviderName("n2")) == {}
    assert NODES.only({ProviderName("n1")}) == {"n1": {"VCPU": 2, "PCPU": 1}}
    assert NODES.without(ProviderName("n1")) == {"n0": {"VCPU": 1, "MEMORY_MB": 5}}
    by_id = NODES.renamed(lambda name: ProviderId(f"uuid of {name}"))
    assert [*by_id] == ["uuid of n0", "uuid of n1"]
    assert by_id.renamed(lambda uuid: ProviderName(uuid[-2:])) == NODES


def test_a_portion_does_not_change_with_the_mapping_given_to_the_constructor() -> None:
    amounts = {"n0": {"VCPU": 1}}
    portion = Portion.by_name(amounts)
    amounts["n0"]["VCPU"] = 9
    portion.to_json()["n0"]["VCPU"] = 9
    assert portion == {"n0": {"VCPU": 1}}
    assert repr(portion) == "Portion({'n0': {'VCPU': 1}})"


def test_holdings_by_consumer_and_by_provider() -> None:
    holdings = Holdings.by_name(
        {"a": {"u0": {"VCPU": 1}, "u1": {"VCPU": 2}}, "b": {"u1": {"X": 4}}}
    )
    assert holdings.total == {"u0": {"VCPU": 1}, "u1": {"VCPU": 2, "X": 4}}
    assert holdings.amounts == {"a": {"VCPU": 3}, "b": {"X": 4}}  # 1 + 2
    assert holdings.of_provider(ProviderName("u0")) == {"a": {"VCPU": 1}}
    assert holdings.of(ConsumerId("c")) == {}
    more = Holdings.by_name({"b": {"u1": {"X": 1}}, "c": {"u0": {"X": 1}}})
    assert (holdings + more).amounts == {"a": {"VCPU": 3}, "b": {"X": 5}, "c": {"X": 1}}  # 4 + 1
    assert repr(more) == "Holdings({'b': {'u1': {'X': 1}}, 'c': {'u0': {'X': 1}}})"


AMOUNTS = st.dictionaries(st.sampled_from(["VCPU", "PCPU", "MEMORY_MB"]), st.integers(0, 9))
PORTIONS = st.dictionaries(st.sampled_from(["n0", "n1", "n2"]), AMOUNTS).map(Portion.by_name)
HOLDINGS = st.dictionaries(st.sampled_from("abc").map(ConsumerId), PORTIONS).map(
    lambda portions: Holdings(portions)
)


@given(PORTIONS, PORTIONS, PORTIONS)
def test_sums_are_associative_and_commutative(
    a: Portion[ProviderName], b: Portion[ProviderName], c: Portion[ProviderName]
) -> None:
    assert (a + b) + c == a + (b + c) == sum_portions([c, b, a])
    assert a + b == b + a
    assert hash(a + b) == hash(b + a)


@given(PORTIONS, PORTIONS)
def test_a_difference_undoes_a_sum_and_makes_up_for_missing_amounts(
    a: Portion[ProviderName], b: Portion[ProviderName]
) -> None:
    assert (a + b) - b == a
    assert not a - (a + b)
    assert b + (a - b) == a + (b - a)  # the larger amount of each class


@given(HOLDINGS, HOLDINGS)
def test_totals_by_provider_and_by_consumer_agree(
    first: Holdings[ProviderName], second: Holdings[ProviderName]
) -> None:
    both = first + second
    assert both == second + first
    assert both.total == first.total + second.total
    by_consumer = Portion.by_name(both.amounts)  # summed over consumers as over providers
    assert by_consumer.total == both.total.total
    for provider in both.total:
        of_provider = Portion.by_name(both.of_provider(provider))
        assert of_provider.total == both.total[provider]
