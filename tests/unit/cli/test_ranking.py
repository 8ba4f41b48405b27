"""The order of hosts beside the weighers of Nova, computed by hand."""

import pytest

from cpu_tiers.conf.weight_classes import OURS
from cpu_tiers.tools.cloud.ranking import other_winners, rank

RAW = {
    "ram": {"big": 4000.0, "half": 2000.0},
    "cpu": {"big": 20.0, "half": 10.0},
    "disk": {"big": 0.0, "half": -5.0},
    OURS: {"big": 0.2, "half": 0.9},
}
DEFAULTS = {"ram": 1.0, "cpu": 1.0, "disk": 1.0, OURS: 0.0}


def test_weights_are_divided_by_the_largest_and_multiplied() -> None:
    big, half = rank(RAW, {**DEFAULTS, "ram": 2.0, OURS: 1.0})
    # Of disk nothing is free: 0 everywhere. Nova's minval is 0.
    assert big["weighers"] == {"ram": 2.0, "cpu": 1.0, "disk": 0.0, OURS: 0.2}
    assert half["weighers"] == {"ram": 1.0, "cpu": 0.5, "disk": 0.0, OURS: 0.9}
    assert (big["host"], big["weight"], half["weight"]) == ("big", 3.2, 2.4)
    assert big["margin"] == pytest.approx(0.8)
    assert half["margin"] is None


def test_equal_hosts_are_ordered_by_name() -> None:
    ranked = rank({"ram": {"b": 1.0, "a": 1.0}}, {"ram": 1.0})
    assert [(host["host"], host["margin"]) for host in ranked] == [("a", 0.0), ("b", None)]


def test_the_options_that_change_the_winner() -> None:
    # big: 1 + 1 + 0.2 m, half: 0.5 + 0.5 + 0.9 m. With m = 1 it is 2.2 to 1.9, big wins; with the
    # multiplier of memory at 0 and m = 1 it is 1.2 to 1.4.
    multipliers = {**DEFAULTS, OURS: 1.0}
    assert other_winners(RAW, multipliers, {"boring": {"big": 0.0, "half": 1.0}}) == [
        {"option": "ram_weight_multiplier", "value": "0.0", "host": "half"},
        {"option": "cpu_weight_multiplier", "value": "0.0", "host": "half"},
    ]
    equal = {**RAW, "ram": {"big": 2.0, "half": 2.0}, "cpu": {"big": 2.0, "half": 2.0}}
    assert other_winners(equal, DEFAULTS, {}) == [
        {"option": "resource_provider_weight_multiplier", "value": "1.0", "host": "half"},
    ]


def test_the_multiplier_of_an_aggregate_counts_before_that_of_nova_conf() -> None:
    # big: -2 * 1 + 1, half: 0.5 + 0.5. The option changes only the multiplier of half.
    own = {"ram": {"big": -2.0}}
    half, big = rank(RAW, DEFAULTS, own)
    assert (half["host"], half["weight"], big["weight"]) == ("half", 1.0, -1.0)
    assert other_winners({"ram": RAW["ram"]}, {"ram": 1.0}, {}, own) == []
    # Of a weigher that is not loaded, no aggregate has a weight.
    assert rank(RAW, {"cpu": 1.0}, own)[0]["host"] == "big"


@pytest.mark.parametrize("hosts", [(), ("big",)])
def test_a_single_host_has_no_rival(hosts: tuple[str, ...]) -> None:
    raw = {name: {host: of[host] for host in hosts} for name, of in RAW.items()}
    assert [host["host"] for host in rank(raw, DEFAULTS)] == list(hosts)
    assert other_winners(raw, DEFAULTS, {}) == []
