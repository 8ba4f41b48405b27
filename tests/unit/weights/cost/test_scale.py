"""What a server leaves on a host, in average hosts, and the score that follows."""

from typing import Any

import pytest

from cpu_tiers.weights import BEST_FIT, make_forest
from tests.unit.weights.summaries import provider, scale_of

CLOUD = {
    "plain": provider("plain", VCPU=(8, 4)),
    "gpu": provider("gpu", VCPU=(8, 4)),
    "gpu device": provider("gpu", VGPU=(4, 2)),
}
"""Half of each class is in use. A host has 8 VCPU and 2 VGPU on average."""


def test_the_scale_of_a_cloud() -> None:
    scale = scale_of(CLOUD.values(), 2)
    assert scale.units == {"VCPU": 8.0, "VGPU": 2.0}  # 16/2 and 4/2
    assert scale.weights == {"VCPU": 1.0, "VGPU": 1.0}


def test_a_class_without_use_weighs_little() -> None:
    summaries = [provider("a", VCPU=(10, 9), DISK_GB=(10, 0), PCPU=(0, 0))]
    weights = scale_of(summaries, 1).weights
    assert weights == {"VCPU": 1.0, "DISK_GB": pytest.approx(0.01)}  # (0.1/1.0)**2


def test_more_use_than_capacity_counts_as_all_of_the_capacity() -> None:
    """Used: 1 of VCPU, 1/2 of VGPU. Weights: (1.1 / 1.1)^2 and (0.6 / 1.1)^2 = 0.2975."""
    weights = scale_of([provider("a", VCPU=(4, 6), VGPU=(2, 1))], 1).weights
    assert weights == pytest.approx({"VCPU": 1.0, "VGPU": 0.2975}, abs=1e-4)


def test_the_parts_and_the_score_of_a_host() -> None:
    """The request is 2/8 = 0.25 of a host."""
    forest = make_forest(CLOUD, {"VCPU": 2}, scoring=BEST_FIT)
    # 4 - 2 VCPU are left, 0.25 of a host: 0.25 / (0.25 + 0.25)
    assert forest.explain("plain").resources == {"VCPU": 0.5}
    assert forest.score("plain") == 0.5
    # 2 VGPU are left, too, a whole host: 0.25 / (0.25 + 0.25 + 1)
    gpu = forest.explain("gpu")
    assert gpu.resources == {"VCPU": 0.5, "VGPU": 0.2}
    assert gpu.score == gpu.resource_score == pytest.approx(1 / 6)
    assert (gpu.trait_score, gpu.traits) == (0.0, {})


def test_the_server_that_fills_a_host_gets_the_score_1_on_the_host() -> None:
    forest = make_forest(CLOUD, {"VCPU": 4}, scoring=BEST_FIT)
    assert forest.score("plain") == 1.0


def test_a_claim_makes_a_host_fit_better() -> None:
    forest = make_forest(CLOUD, {"VCPU": 2}, scoring=BEST_FIT)
    forest.claim("plain", {"VCPU": 1})
    assert forest.score("plain") == pytest.approx(0.25 / (0.25 + 0.125))  # 1 VCPU is left


def test_a_rare_class_keeps_away_servers_without_a_request_for_the_class() -> None:
    """The tighter host has the only devices: the looser host wins."""
    cloud = {f"plain {n}": provider(f"plain {n}", VCPU=(8, 2)) for n in range(9)}
    cloud["gpu"] = provider("gpu", VCPU=(8, 5), VGPU=(4, 1))
    scores = make_forest(cloud, {"VCPU": 2}, scoring=BEST_FIT).scores()
    assert scores["plain 0"] > scores["gpu"]
    asks = make_forest(cloud, {"VCPU": 2, "VGPU": 1}, scoring=BEST_FIT).scores()
    assert asks["gpu"] > scores["gpu"]


@pytest.mark.parametrize(
    ("requested", "options"),
    [
        pytest.param({}, {}, id="nothing is requested"),
        pytest.param({"VCPU": 2}, {"only_resources": ["FPGA"]}, id="no class counts"),
        pytest.param({"CUSTOM_X": 2}, {}, id="a class that no host has"),
    ],
)
def test_a_request_without_size_scores_0(requested: dict[str, int], options: Any) -> None:
    assert make_forest(CLOUD, requested, scoring=BEST_FIT, **options).score("gpu") == 0.0


def test_only_the_classes_of_the_option_count() -> None:
    forest = make_forest(CLOUD, {"VCPU": 2}, scoring=BEST_FIT, only_resources=["VCPU"])
    assert forest.score("gpu") == forest.score("plain") == 0.5
