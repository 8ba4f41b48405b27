"""The text of a policy, and the weights of Nova's weighers.

``tests/nova/scheduler/test_policies.py`` compares the weights with Nova's own classes.
"""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.simulation.policies import WEIGHERS, Policy, with_weights
from cpu_tiers.weights import BORING, Scoring

CONFIGURED = {**WEIGHERS, "cpu": 3.0}


@pytest.mark.parametrize(
    ("text", "scoring", "multiplier", "weighers"),
    [
        pytest.param("nova", None, 1.0, CONFIGURED, id="only Nova"),
        pytest.param("boring", BORING, 1.0, CONFIGURED, id="a scoring beside Nova's weighers"),
        pytest.param(
            "boring=2.5,cpu=0,ram=-1",
            BORING,
            2.5,
            {**CONFIGURED, "cpu": 0.0, "ram": -1.0},
            id="multipliers",
        ),
        pytest.param("boring=0", BORING, 0.0, CONFIGURED, id="a scoring without weight"),
    ],
)
def test_parse(
    text: str, scoring: Scoring | None, multiplier: float, weighers: dict[str, float]
) -> None:
    policy = Policy.parse(text, CONFIGURED)
    assert (policy.name, policy.scoring, policy.multiplier) == (text, scoring, multiplier)
    assert policy.weighers == weighers


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("dull", ["got 'dull'; begin with nova, "]),
        (
            "Fragmentation",
            ["got 'Fragmentation'; begin with nova, literal, boring, requested-to-capacity"],
        ),
        ("boring=x,gpu=1,cpu", ["got 'gpu'", "got ''", "got 'x'"]),
        ("nova=2", ["nova=2; give the multipliers as nova,ram=2.0"]),
    ],
)
def test_faults(text: str, faults: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        Policy.parse(text, CONFIGURED)
    assert len(error.value.faults) == len(faults)
    for fault in faults:
        assert fault in str(error.value)


@pytest.mark.parametrize(
    ("weigher", "values", "weights"),
    [
        # free amounts count from 0 to the most: 1/4, 4/4
        pytest.param("ram", [1, 4], [0.5, 2.0], id="free memory"),
        pytest.param("cpu", [-2, 4], [0.0, 2.0], id="less than nothing is nothing"),
        pytest.param("disk", [0, 0], [0.0, 0.0], id="all equal at 0"),
        pytest.param("cpu", [3, 3], [2.0, 2.0], id="all equal above 0: 3/3"),
        # numbers of servers count from the least to the most
        pytest.param("num_instances", [1, 5, 3], [0.0, 2.0, 1.0], id="servers"),
        pytest.param("num_instances", [5, 5], [0.0, 0.0], id="as many servers everywhere"),
        pytest.param("ram", [7], [0.0], id="Nova does not weigh a single host"),
    ],
)
def test_weights(weigher: str, values: list[float], weights: list[float]) -> None:
    nothing = [0.0] * len(values)
    assert with_weights(nothing, values, 2.0, weigher=weigher) == weights
