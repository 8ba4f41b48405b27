"""What a server leaves on hosts, before and after claims."""

from typing import Any

import pytest

from cpu_tiers.weights import BEST_FIT, Forest, make_forest
from cpu_tiers.weights.scale import Scale

Summary = Any  # as json.loads returns it


def host(root: str, **free: int) -> dict[str, Summary]:
    """Return a host of one provider with a capacity of 16 of each class."""
    resources = {name: {"capacity": 16, "used": 16 - amount} for name, amount in free.items()}
    return {root: {"resources": resources, "root_provider_uuid": root}}


SUMMARIES = {**host("none"), **host("a", VCPU=8, PCPU=4), **host("b", VCPU=3, PCPU=0)}
SCALE = Scale(units={"VCPU": 16.0, "PCPU": 4.0}, weights={"VCPU": 1.0, "PCPU": 0.5})


def left(*only_resources: str) -> Forest:
    """Return the hosts for a server with 4 VCPU, a quarter of an average host."""
    return make_forest(
        SUMMARIES, {"VCPU": 4}, scoring=BEST_FIT, only_resources=only_resources, scale=SCALE
    )


def test_the_amounts_left_by_a_server_are_weighted_in_average_hosts() -> None:
    hosts = left()
    assert list(hosts.roots) == ["none", "a", "b"]
    # a: (8 - 4) / 16 VCPU, and 4 / 4 PCPU with the weight 0.5. On b and none, nothing is left.
    assert hosts.scores_of(["b", "a", "none"]) == [1.0, 0.25 / (0.25 + 0.25 + 0.5), 1.0]


def test_only_some_resource_classes_count() -> None:
    hosts = left("VCPU")
    assert hosts.score("a") == 0.25 / (0.25 + 0.25)
    assert hosts.explain("a").resources == {"VCPU": 0.5}
    hosts.claim("a", {"VCPU": 1, "PCPU": 1})
    assert hosts.score("a") == 0.25 / (0.25 + 3 / 16)  # 7 - 4 of 16


def test_a_claim_counts() -> None:
    hosts = left()
    hosts.claim("a", {"VCPU": 2, "PCPU": 1, "a class that the host does not have": 1})
    cost = 2 / 16 + 0.5 * 3 / 4
    assert hosts.score("a") == hosts.scores()["a"] == 0.25 / (0.25 + cost)


def test_a_host_that_is_not_in_the_answer() -> None:
    with pytest.raises(KeyError):
        left().score("c")
