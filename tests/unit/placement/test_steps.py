"""The changes of each step, worked out by hand."""

from dataclasses import replace

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.steps import (
    Change,
    CreateName,
    CreateProvider,
    SetInventories,
    SetTraits,
)

EIGHT = Inventory(total=8, max_unit=8, allocation_ratio=2.0)
TEXT = "total 8, reserved 0, min_unit 1, max_unit 8, step_size 1, allocation_ratio 2.0"


def lines(changes: tuple[Change, ...]) -> list[str]:
    return [str(change) for change in changes]


def test_a_new_name_belongs_to_placement() -> None:
    (change,) = CreateName(kind="trait", name="CUSTOM_GOLD").changes
    assert str(change) == "Placement: trait CUSTOM_GOLD absent -> present"


@pytest.mark.parametrize(
    ("parent", "line"),
    [
        pytest.param(None, "c1: provider absent -> present", id="a root"),
        pytest.param("c0", "c1: provider absent -> under c0", id="a child"),
    ],
)
def test_a_new_provider(parent: str | None, line: str) -> None:
    assert lines(CreateProvider(provider="c1", parent=parent).changes) == [line]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param({}, {}, [], id="no inventories: no change"),
        pytest.param({"VCPU": EIGHT}, {"VCPU": EIGHT}, [], id="equal inventories: no change"),
        pytest.param({}, {"VCPU": EIGHT}, [f"c1: VCPU absent -> {TEXT}"], id="an added class"),
        pytest.param({"VCPU": EIGHT}, {}, [f"c1: VCPU {TEXT} -> absent"], id="a removed class"),
        pytest.param(
            {"VCPU": EIGHT},
            {"VCPU": replace(EIGHT, total=16, max_unit=16)},
            ["c1: VCPU total 8 -> 16", "c1: VCPU max_unit 8 -> 16"],
            id="two changed amounts: a change for each",
        ),
        pytest.param(
            {"PCPU": EIGHT, "VCPU": EIGHT},
            {"VCPU": EIGHT, "MEMORY_MB": EIGHT},
            [f"c1: MEMORY_MB absent -> {TEXT}", f"c1: PCPU {TEXT} -> absent"],
            id="sorted by class, unchanged classes left out",
        ),
        pytest.param(
            {"VCPU": EIGHT},
            {"VCPU": replace(EIGHT, ratio_is_initial=True)},
            [],
            id="a field that Placement does not have is no change",
        ),
    ],
)
def test_inventories(
    before: dict[str, Inventory], after: dict[str, Inventory], expected: list[str]
) -> None:
    assert lines(SetInventories(provider="c1", before=before, after=after).changes) == expected


def test_traits_that_stay_are_no_change() -> None:
    step = SetTraits(provider="c1", before=frozenset({"A", "B"}), after=frozenset({"B", "C"}))
    assert lines(step.changes) == [
        "c1: trait A present -> absent",
        "c1: trait C absent -> present",
    ]
