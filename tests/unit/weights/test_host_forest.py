"""Hosts that are scored one by one, and the weights of resource classes."""

import math

import pytest

from cpu_tiers.errors import ExtensionError
from cpu_tiers.weights import (
    REQUESTED_TO_CAPACITY,
    SCORINGS,
    RequestedToCapacity,
    make_forest,
)
from cpu_tiers.weights.scoring import FunctionScoring
from tests.unit.weights.summaries import provider

SPREAD = ((0.0, 1.0), (100.0, 0.0))
PACK = ((0.0, 0.0), (100.0, 1.0))
BEND = ((20.0, 0.5), (60.0, 1.0), (80.0, 0.2))


@pytest.mark.parametrize(
    ("shape", "used", "part"),
    [
        pytest.param(SPREAD, 2, 0.6, id="2 + 2 of 10: 1 - 40 %"),
        pytest.param(PACK, 2, 0.4, id="2 + 2 of 10: 40 %"),
        pytest.param(SPREAD, 8, 0.0, id="full: 8 + 2 of 10"),
        pytest.param(PACK, 20, 1.0, id="more than full counts as full"),
        pytest.param(BEND, 0, 0.5, id="20 %, the first point"),
        pytest.param(BEND, 2, 0.75, id="40 %, between 0.5 and 1.0"),
        pytest.param(BEND, 4, 1.0, id="60 %, a point"),
        pytest.param(BEND, 5, 0.6, id="70 %, between 1.0 and 0.2"),
        pytest.param(BEND, 7, 0.2, id="90 %, beyond the last point"),
        pytest.param(((50.0, 0.3),), 0, 0.3, id="a single point is the same everywhere"),
    ],
)
def test_a_shape(shape: tuple[tuple[float, float], ...], used: int, part: float) -> None:
    """The server requests 2 of 10."""
    host = {"host": provider("host", VCPU=(10, used))}
    forest = make_forest(host, {"VCPU": 2}, scoring=RequestedToCapacity(shape))
    assert forest.score("host") == pytest.approx(part)


def test_equally_full_hosts_of_different_sizes_have_nearly_the_same_score() -> None:
    """Both hosts are half full. The resource scores of literal are 0.625 and 0.906."""
    hosts = {
        "small": provider("small", VCPU=(8, 4), MEMORY_MB=(16, 8)),
        "large": provider("large", VCPU=(32, 16), MEMORY_MB=(64, 32)),
    }
    request = {"VCPU": 2, "MEMORY_MB": 2}
    scores = make_forest(hosts, request, scoring=RequestedToCapacity()).scores()
    # ((1 - 6/8) + (1 - 10/16)) / 2 and ((1 - 18/32) + (1 - 34/64)) / 2
    assert scores == {"small": 0.3125, "large": 0.453125}
    literal = make_forest(hosts, request)
    resource_scores = {host: literal.explain(host).resource_score for host in hosts}
    # ((1 - 2/4) + (1 - 2/8)) / 2 and ((1 - 2/16) + (1 - 2/32)) / 2
    assert resource_scores == {"small": 0.625, "large": 0.90625}


@pytest.mark.parametrize(
    ("scoring", "weights", "score"),
    [
        pytest.param("literal", {"VCPU": 1.0, "VGPU": 1.0}, 0.375, id="((1 - 2/4) + 1) / 2 / 2"),
        pytest.param("literal", {"VCPU": 3.0, "VGPU": 1.0}, 0.3125, id="(3 x 0.5 + 1) / 4 / 2"),
        pytest.param("literal", {"VCPU": 0.0, "VGPU": 0.0}, 0.0, id="nothing counts"),
        pytest.param("boring", {"VCPU": 3.0, "VGPU": 1.0}, 0.6875, id="(3 x 0.5 / 4 + 1) / 2"),
        pytest.param(
            REQUESTED_TO_CAPACITY,
            {"VCPU": 3.0, "VGPU": 1.0},
            0.25,
            id="VGPU is not requested: 1 - 6/8",
        ),
    ],
)
def test_weights_of_classes(scoring: str, weights: dict[str, float], score: float) -> None:
    host = {"host": provider("host", VCPU=(8, 4), VGPU=(2, 0), MEMORY_MB=(8, 0))}
    forest = make_forest(host, {"VCPU": 2}, scoring=SCORINGS[scoring], only_resources=weights)
    assert forest.score("host") == score
    assert forest.explain("host").score == score


def test_weights_of_requested_classes() -> None:
    host = {
        "a": provider("host", VCPU=(8, 4)),
        "b": provider("host", VCPU=(8, 2), MEMORY_MB=(10, 0)),
    }
    weights = {"VCPU": 1.0, "MEMORY_MB": 2.0}
    request = {"VCPU": 2, "MEMORY_MB": 2, "DISK_GB": 10}
    forest = make_forest(host, request, scoring=RequestedToCapacity(), only_resources=weights)
    # VCPU of both providers 1 - (6 + 2)/16 = 0.5, MEMORY_MB 1 - 2/10 = 0.8: (0.5 + 2 x 0.8) / 3
    assert forest.score("host") == pytest.approx(0.7)
    assert forest.explain("host").resources == {"VCPU": 0.5, "MEMORY_MB": 0.8}
    forest.claim("host", {"VCPU": 4, "VGPU": 1})
    # then 1 - (10 + 2)/16 = 0.25
    assert forest.score("host") == pytest.approx((0.25 + 1.6) / 3)


def test_a_function_of_another_distribution() -> None:
    scoring = FunctionScoring(lambda server, host: host.used["VCPU"] / host.capacity["VCPU"])
    hosts = {"a": provider("a", VCPU=(8, 2)), "b": provider("b", VCPU=(8, 4))}
    assert make_forest(hosts, {"VCPU": 2}, scoring=scoring).scores() == {"a": 0.25, "b": 0.5}


@pytest.mark.parametrize("number", [math.nan, math.inf, -0.1, 1.1])
def test_a_function_that_returns_no_score(number: float) -> None:
    scoring = FunctionScoring(lambda server, host: number)
    forest = make_forest({"a": provider("a", VCPU=(8, 2))}, {"VCPU": 2}, scoring=scoring)
    with pytest.raises(ExtensionError, match=r"not 0\.0 to 1\.0"):
        forest.score("a")
