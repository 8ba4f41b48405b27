"""The weights of preferred and avoided traits, by host."""

from collections.abc import Sequence
from unittest import mock

import pytest

from cpu_tiers.weights.soft_traits import SoftTraits
from tests.unit.weights.summaries import Summary, provider

PRESSURE = {"PRESSURE_*": -1.0, "CUSTOM_PRESSURE_*": -1.0}


def tree(root: str, *traits: Sequence[str]) -> dict[str, Summary]:
    """Return the providers of a host, each with its traits."""
    return {f"{root}{n}": {**provider(root), "traits": list(of)} for n, of in enumerate(traits)}


@pytest.mark.parametrize(
    ("configured", "flavor", "traits", "weight"),
    [
        pytest.param(PRESSURE, {}, [["CUSTOM_PRESSURE_CPU"]], -1.0, id="avoided by its beginning"),
        pytest.param(
            PRESSURE,
            {},
            [["CUSTOM_PRESSURE_CPU", "PRESSURE_IO"], ["CUSTOM_PRESSURE_CPU"]],
            -2.0,
            id="two traits, one of them of two providers of the host: -1 - 1",
        ),
        pytest.param(
            PRESSURE, {"CUSTOM_PRESSURE_CPU": 0.0}, [["CUSTOM_PRESSURE_CPU"]], 0.0, id="tolerated"
        ),
        pytest.param(
            PRESSURE,
            {"CUSTOM_PRESSURE_CPU": 2.0},
            [["CUSTOM_PRESSURE_CPU", "CUSTOM_PRESSURE_IO"]],
            1.0,
            id="the flavor counts for its own trait only: 2 - 1",
        ),
        pytest.param(
            {"CUSTOM_A": 1.5},
            {"CUSTOM_A": -3.0},
            [["CUSTOM_A"]],
            -3.0,
            id="flavor before nova.conf",
        ),
        pytest.param(
            {"CUSTOM_*": -1.0, "CUSTOM_GPU_*": -5.0, "CUSTOM_GPU_A": 2.0},
            {},
            [["CUSTOM_GPU_A", "CUSTOM_GPU_B", "CUSTOM_C"]],
            -4.0,
            id="the name, the longest beginning, the other beginning: 2 - 5 - 1",
        ),
        pytest.param(
            {"CUSTOM_A": 1.0}, {}, [["CUSTOM_AB", "HW_CUSTOM_A"]], 0.0, id="a part of another name"
        ),
        pytest.param({}, {"HW_CPU_X86_AVX2": 0.25}, [["HW_CPU_X86_AVX2"]], 0.25, id="flavor only"),
    ],
)
def test_the_weight_of_a_host(
    configured: dict[str, float], flavor: dict[str, float], traits: list[list[str]], weight: float
) -> None:
    summaries = {**tree("plain", ["HW_CPU_X86_SSE"]), **tree("host", *traits)}
    hosts = SoftTraits(configured, flavor).of_hosts(summaries)
    assert sum(hosts.get("host", {}).values()) == weight
    assert not hosts.get("plain")


def test_hosts_without_soft_traits_cost_a_search_for_each_provider_only() -> None:
    summaries = tree("host", ["HW_CPU_X86_AVX2", "CUSTOM_A"], ["HW_NUMA_ROOT"])
    with mock.patch.object(SoftTraits, "_weights_of", side_effect=AssertionError):
        assert SoftTraits(PRESSURE, {}).of_hosts(summaries) == {}


def test_without_names_no_summary_is_read() -> None:
    """None in place of summaries would fail."""
    assert SoftTraits({}, {"CUSTOM_A": 0.0}).of_hosts({"host": None}) == {}  # type: ignore[dict-item]


def test_a_trait_of_a_shared_pool_counts_for_the_hosts_whose_candidates_use_the_pool() -> None:
    """Of two hosts in the aggregate of the pool, one takes its disk from the pool; 2 - 0.5."""
    summaries = {
        **tree("user", ["CUSTOM_A"]),
        **tree("other", []),
        **tree("pool", ["CUSTOM_SSD", "MISC_SHARES_VIA_AGGREGATE"]),
    }
    candidates = [("user", ["user0"]), ("user", ["user0", "pool0"]), ("other", ["other0"])]
    traits = SoftTraits({"CUSTOM_A": -0.5}, {"CUSTOM_SSD": 2.0})
    hosts = traits.of_hosts(summaries, candidates)
    assert sum(hosts["user"].values()) == 1.5
    assert "other" not in hosts


def test_candidates_are_read_only_beside_a_pool_with_a_soft_trait() -> None:
    """None in place of candidates would fail."""
    pools = tree("pool", ["MISC_SHARES_VIA_AGGREGATE"], ["CUSTOM_SSD"])
    traits = SoftTraits({}, {"CUSTOM_SSD": 1.0})
    assert traits.of_hosts(pools, None) == {"pool": {"CUSTOM_SSD": 1.0}}  # type: ignore[arg-type]
