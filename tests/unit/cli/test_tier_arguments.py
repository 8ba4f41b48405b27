"""The argument ``--tier``, valid and invalid."""

from argparse import ArgumentParser

import pytest

from cpu_tiers.errors import InvalidInput
from cpu_tiers.tools.frame.server_arguments import add_tier_argument, read_tiers, tier_names
from cpu_tiers.tools.tiers.tier import Tier


def read(*texts: str) -> list[Tier]:
    parser = ArgumentParser()
    add_tier_argument(parser)
    return read_tiers(parser.parse_args([f"--tier={text}" for text in texts]))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        pytest.param(
            (), [("gold", 100, 1), ("silver", 50, 1), ("bronze", 25, 1)], id="the spec's tiers"
        ),
        pytest.param(("gold=100x4",), [("gold", 400, 4)], id="the weight is 100 x 4 vCPUs"),
        pytest.param(("my tier=2.5x2",), [("my tier", 5, 2)], id="a fraction: 2.5 x 2 = 5"),
    ],
)
def test_tiers(texts: tuple[str, ...], expected: list[tuple[str, int, int]]) -> None:
    assert [(tier.name, tier.weight, tier.vcpus) for tier in read(*texts)] == expected


@pytest.mark.parametrize(
    ("texts", "faults"),
    [
        pytest.param(("gold",), ["got 'gold'"], id="no multiplier"),
        pytest.param(("=100",), ["got '=100'"], id="no name"),
        pytest.param(("gold=100x",), ["got 'gold=100x'"], id="no vCPUs after the x"),
        pytest.param(("gold=100x123456",), ["got 'gold=100x123456'"], id="too many vCPUs"),
        pytest.param(("a=1", "a=2"), ["a is given twice"], id="a tier twice"),
        pytest.param(("a", "b", "c=1"), ["got 'a'", "got 'b'"], id="every fault is named"),
    ],
)
def test_faults(texts: tuple[str, ...], faults: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        read(*texts)
    assert [fault.given for fault in error.value.faults] == faults


@pytest.mark.parametrize("multiplier", ["0", "-1", "nan", "many"])
def test_a_multiplier_must_be_a_positive_number(multiplier: str) -> None:
    with pytest.raises(InvalidInput, match=f"of --tier gold={multiplier}"):
        read(f"gold={multiplier}")


def test_no_guests_have_no_tiers() -> None:
    assert tier_names([], read()) == {}
