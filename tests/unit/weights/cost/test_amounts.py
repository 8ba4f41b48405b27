"""The amounts of the hosts of an answer, read at once for hosts that are built alike."""

import pytest

from cpu_tiers.weights.cost.amounts import AnsweredAmounts
from tests.unit.weights.summaries import Summary, provider


def nodes(root: str, used: int) -> dict[str, Summary]:
    """Return a host with a disk and two NUMA nodes; on the second, more CPUs are used."""
    return {
        root: provider(root, DISK_GB=(100, used)),
        f"{root}0": provider(root, VCPU=(8, used), PCPU=(2, 0)),
        f"{root}1": provider(root, VCPU=(8, used + 1), PCPU=(2, 1)),
    }


def test_hosts_with_equal_providers_are_summed_together() -> None:
    amounts = AnsweredAmounts({**nodes("a", 3), **nodes("b", 5), "c": provider("c", VCPU=(4, 6))})
    with_nodes, flat = amounts.alike
    assert with_nodes.build == (1, "DISK_GB", 2, "VCPU", "PCPU", 2, "VCPU", "PCPU")
    assert list(with_nodes.hosts) == ["a", "b"]
    # Of a and b: 100 - 3 and 100 - 5; 5 + 4 and 3 + 2; 2 + 1 and 2 + 1.
    assert with_nodes.free == {"DISK_GB": [97, 95], "VCPU": [9, 5], "PCPU": [3, 3]}
    assert flat.free == {"VCPU": [-2]}  # more is used than the capacity
    assert list(amounts.roots()) == ["a", "b", "c"]


def test_the_scale_of_an_answer() -> None:
    scale = AnsweredAmounts({**nodes("a", 3), **nodes("b", 3)}).totals().scale()
    assert scale.units == {"DISK_GB": 100.0, "VCPU": 16.0, "PCPU": 4.0}
    # In use: 3 of 100 GB, 3 + 4 of 16 VCPU and 1 of 4 PCPU, which are 0.03, 0.4375 and 0.25.
    assert scale.weights == pytest.approx(
        {
            "DISK_GB": 0.0585,  # (0.13 / 0.5375)^2
            "VCPU": 1.0,
            "PCPU": 0.4240,  # (0.35 / 0.5375)^2
        },
        abs=1e-4,
    )


def test_the_providers_of_a_host_need_not_stand_together() -> None:
    """Providers that a host has got later stand behind all providers of the other hosts."""
    a, b = nodes("a", 3), nodes("b", 5)
    late = {"a": a.pop("a"), "b": b.pop("b"), **a, **b}
    (alike,) = AnsweredAmounts(late).alike
    assert list(alike.hosts["a"].positions.items()) == [("a", 0), ("a0", 1), ("a1", 2)]
    assert alike.hosts["b"].free == [95, 3, 2, 2, 1]


def test_a_host_without_any_resources_is_a_host() -> None:
    amounts = AnsweredAmounts({"a": provider("a"), "b": provider("b", VCPU=(8, 2))})
    assert [alike.build for alike in amounts.alike] == [(0,), (1, "VCPU")]
    assert amounts.totals().scale().units == {"VCPU": 4.0}  # 8 on two hosts
