"""What a server leaves on hosts, before and after claims."""

from typing import Any

import pytest

from cpu_tiers.weights.cost import RemainingAmounts
from cpu_tiers.weights.cost.amounts import AnsweredAmounts, Scale

Summary = Any  # as json.loads returns it


def host(root: str, **free: int) -> dict[str, Summary]:
    """Return a host of one provider with a capacity of 16 of each class."""
    resources = {name: {"capacity": 16, "used": 16 - amount} for name, amount in free.items()}
    return {root: {"resources": resources, "root_provider_uuid": root}}


SUMMARIES = {**host("none"), **host("a", VCPU=8, PCPU=4), **host("b", VCPU=3, PCPU=0)}
SCALE = Scale(units={"VCPU": 16.0, "PCPU": 4.0}, weights={"VCPU": 1.0, "PCPU": 0.5})


def left(*only_resources: str) -> RemainingAmounts:
    """Return what a server with 4 VCPU leaves on the hosts."""
    amounts = RemainingAmounts(AnsweredAmounts(SUMMARIES), {"VCPU": 4}, only_resources)
    amounts.weigh(SCALE)
    return amounts


def test_the_amounts_left_by_a_server_are_weighted_in_average_hosts() -> None:
    amounts = left()
    assert list(AnsweredAmounts(SUMMARIES).roots()) == ["none", "a", "b"]
    # a: (8 - 4) / 16 VCPU, and 4 / 4 PCPU with the weight 0.5. On b, nothing is left.
    assert amounts.costs(["b", "a", "none"]) == [0.0, 0.25 + 0.5, 0]


def test_only_some_resource_classes_count() -> None:
    amounts = left("VCPU")
    assert amounts.costs(["a"]) == [0.25]
    assert amounts.free("a") == {"VCPU": 8}
    amounts.claim("a", {"VCPU": 1, "PCPU": 1})
    assert amounts.free("a") == {"VCPU": 7}


def test_a_claim_counts() -> None:
    amounts = left()
    amounts.claim("a", {"VCPU": 2, "PCPU": 1, "a class that the host does not have": 1})
    assert amounts.free("a") == {"VCPU": 6, "PCPU": 3}
    assert amounts.costs(["a"]) == [2 / 16 + 0.5 * 3 / 4]


def test_a_host_that_is_not_in_the_answer() -> None:
    with pytest.raises(KeyError):
        left().costs(["c"])
