"""Options that are lists of names with weights."""

from pathlib import Path

import pytest
from oslo_config import types

from cpu_tiers.conf import list_opts
from cpu_tiers.conf.read import read_config
from cpu_tiers.conf.weigher import request_traits
from cpu_tiers.conf.weigher_types import ShapeType, WeightedNames
from cpu_tiers.errors import InvalidInput

NUMBERS = "that is a number from 0 to 1000 without an exponent, such as 2.5"


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("", {}),
        ("CUSTOM_A", {"CUSTOM_A": 1.0}),
        ("CUSTOM_A=1.5, CUSTOM_B", {"CUSTOM_A": 1.5, "CUSTOM_B": 1.0}),
        ("CUSTOM_A=0,CUSTOM_P_*=1000", {"CUSTOM_A": 0.0, "CUSTOM_P_*": 1000.0}),
    ],
)
def test_weights(text: str, weights: dict[str, float]) -> None:
    names = WeightedNames(are_prefixes=True)
    assert names(text) == weights
    assert names(text.split(",")) == weights


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *(
            (f"CUSTOM_A={weight}", f"entry 'CUSTOM_A={weight}' has no weight {NUMBERS}")
            for weight in ("", "x", "-1", "nan", "inf", "1e3", "1000.5", "9" * 400, "1=2")
        ),
        ("CUSTOM_A,,CUSTOM_B", "entry '' has no name; write NAME or NAME=WEIGHT"),
        ("=2", "entry '=2' has no name; write NAME or NAME=WEIGHT"),
        ("*", "entry '*' has no name; write NAME or NAME=WEIGHT"),
        ("A*B", "entry 'A*B' has no name; write NAME or NAME=WEIGHT"),
        ("A=1,B,A=1", "entry 'A=1' names A a second time; leave one out"),
        (
            "VCPU_SHARES,CUSTOM_VCPU_SHARES=2",
            "entry 'CUSTOM_VCPU_SHARES=2' names CUSTOM_VCPU_SHARES a second time; leave one out",
        ),
    ],
)
def test_entries_that_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match="entry") as caught:
        WeightedNames(are_prefixes=True)(text)
    assert str(caught.value) == reason


def test_a_beginning_of_names_only_where_traits_are_listed() -> None:
    with pytest.raises(ValueError, match="has no name"):
        WeightedNames()("CUSTOM_*")


def options_of(tmp_path: Path, lines: str) -> object:
    (path := tmp_path / "nova.conf").write_text(f"[filter_scheduler]\n{lines}\n")
    return read_config([str(path)]).filter_scheduler


def test_an_error_names_the_option_and_the_entry(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as caught:
        options_of(tmp_path, "resource_provider_avoided_traits = CUSTOM_A=nan")
    (fault,) = caught.value.faults
    assert fault.where == "nova.conf, [filter_scheduler] resource_provider_avoided_traits"
    assert "entry 'CUSTOM_A=nan' has no weight" in fault.given


NUMBERS_OF_OURS = [
    pytest.param(group, option.name, id=option.name)
    for group, options in list_opts()
    for option in options
    if isinstance(option.type, types.Float)
]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "1e999"])
@pytest.mark.parametrize(("group", "option"), NUMBERS_OF_OURS)
def test_a_number_is_finite(group: str, option: str, value: str, tmp_path: Path) -> None:
    (path := tmp_path / "nova.conf").write_text(f"[{group}]\n{option} = {value}\n")
    with pytest.raises(InvalidInput, match=f"{value} is no finite number; write") as caught:
        read_config([str(path)])
    assert [fault.where for fault in caught.value.faults] == [f"nova.conf, [{group}] {option}"]


def test_the_options_that_are_numbers() -> None:
    assert len(NUMBERS_OF_OURS) == 5  # multipliers of scores, traits, and nearness (three)


def test_a_trait_is_not_both_preferred_and_avoided(tmp_path: Path) -> None:
    preferred = "resource_provider_preferred_traits = PRESSURE_*, CUSTOM_A"
    avoided = "resource_provider_avoided_traits = PRESSURE_*"
    options = options_of(tmp_path, f"{preferred}\n{avoided}")
    with pytest.raises(InvalidInput) as caught:
        request_traits(options, {})
    (fault,) = caught.value.faults
    assert str(fault) == (
        "nova.conf, [filter_scheduler] resource_provider_preferred_traits and"
        " resource_provider_avoided_traits: PRESSURE_* is in both; leave one out"
    )


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("0=1,100=0", ((0.0, 1.0), (100.0, 0.0))),
        ("100=0.5, 20=1 ,70.5=0", ((20.0, 1.0), (70.5, 0.0), (100.0, 0.5))),
        ("50=1", ((50.0, 1.0),)),
    ],
)
def test_shapes(text: str, points: tuple[tuple[float, float], ...]) -> None:
    assert ShapeType()(text) == points


@pytest.mark.parametrize(
    ("text", "entry", "reason"),
    [
        *(
            (entry, entry, "is no point; write PERCENT=PART, a number from 0 to 100 and a number")
            for entry in (
                "",
                "50",
                "=1",
                "50=",
                "x=1",
                "101=1",
                "-1=1",
                "50=1.1",
                "50=-1",
                "1=2=3",
            )
        ),
        ("0=1,nan=0", "nan=0", "is no point"),
        ("0=1,100=inf", "100=inf", "is no point"),
        ("0=1,1e1=0", "1e1=0", "is no point"),
        ("0=1,,100=0", "", "is no point"),
        ("0=1,50=1,50.0=0", "50.0=0", "is a second point at 50; leave one out"),
    ],
)
def test_shapes_that_are_refused(text: str, entry: str, reason: str) -> None:
    with pytest.raises(ValueError, match="entry") as caught:
        ShapeType()(text)
    assert f"entry {entry!r} {reason}" in str(caught.value)


def test_the_name_of_a_scoring_that_no_distribution_has(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="resource_provider_scoring: invalid"):
        options_of(tmp_path, "resource_provider_scoring = exciting")
