"""The text of a policy."""

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.cloud_model.nova_weighers import WEIGHERS
from cpu_tiers.tools.simulation.policies import Policy
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
