"""Generations of consecutive writes, and the report of an operation that fails."""

from typing import Any

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.errors import (
    GenerationConflict,
    Interrupted,
    InventoryInUse,
    PlacementRefused,
    PlacementUnavailable,
)
from cpu_tiers.placement.records import Inventories, Traits
from cpu_tiers.placement.steps import (
    Change,
    CreateName,
    CreateProvider,
    ProviderState,
    SetInventories,
    SetTraits,
    State,
)
from cpu_tiers.placement.writer import Progress, Writer, carry_out
from tests.unit.placement.scripted import Play, answer, version

FOUR = Inventory(total=4, max_unit=4)
STATE = State(
    providers={
        "c1": ProviderState(
            uuid="u1",
            parent=None,
            inventories=Inventories(generation=7, by_class={}),
            traits=Traits(generation=7, names=frozenset()),
        )
    }
)
A, B, C = (Change(provider="c1", what=what, before="absent", after="present") for what in "ABC")


def sent(play: Play) -> list[tuple[str, str, Any]]:
    return [(method, path, kwargs.get("json")) for method, path, kwargs in play.sent[1:]]


def test_a_write_uses_the_generation_of_the_write_before() -> None:
    inventories = {"inventories": {}, "resource_provider_generation": 8}
    traits = {"traits": ["CUSTOM_A"], "resource_provider_generation": 9}
    play = Play(
        version("1.39"), answer(200, inventories), answer(200, traits), answer(200, inventories)
    )
    writer = Writer(play.client(), STATE)
    # Placement counts each write: read as 7, 8 after the inventories, 9 after the traits.
    writer.write(SetInventories(provider="c1", before={}, after={"VCPU": FOUR}))
    writer.write(SetTraits(provider="c1", before=frozenset(), after=frozenset({"CUSTOM_A"})))
    writer.write(SetInventories(provider="c1", before={"VCPU": FOUR}, after={}))
    generations = [body["resource_provider_generation"] for _, _, body in sent(play)]
    assert generations == [7, 8, 9]


def test_a_created_provider_is_a_parent_of_later_steps_and_starts_at_generation_0() -> None:
    node = {"uuid": "u2", "name": "c1_NUMA0", "root_provider_uuid": "u1"}
    play = Play(
        version("1.39"),
        answer(200, {**node, "parent_provider_uuid": "u1"}),
        answer(200, {"traits": [], "resource_provider_generation": 1}),
    )
    writer = Writer(play.client(), STATE)
    writer.write(CreateProvider(provider="c1_NUMA0", parent="c1", uuid="u2"))
    writer.write(SetTraits(provider="c1_NUMA0", before=frozenset(), after=frozenset({"T"})))
    (_, _, created), (_, path, traits) = sent(play)
    assert created["parent_provider_uuid"] == "u1"
    assert path == "/resource_providers/u2/traits"
    assert traits["resource_provider_generation"] == 0
    assert writer.uuid("c1_NUMA0") == "u2"


def test_names_are_created_by_kind() -> None:
    play = Play(version("1.39"), answer(201, b""), answer(204, b""))
    writer = Writer(play.client(), STATE)
    writer.write(CreateName(kind="resource class", name="CUSTOM_X"))
    writer.write(CreateName(kind="trait", name="CUSTOM_X"))
    paths = [path for _, path, _ in sent(play)]
    assert paths == ["/resource_classes/CUSTOM_X", "/traits/CUSTOM_X"]


@pytest.mark.parametrize(
    ("detail", "classes"),
    [
        pytest.param("Inventory for 'VCPU' in use.", ("VCPU",), id="the class in the detail"),
        pytest.param("VCPU_X in use", ("PCPU", "VCPU"), id="no whole name in it: all removed"),
        pytest.param("in use", ("PCPU", "VCPU"), id="no name in it: all removed"),
    ],
)
def test_an_inventory_in_use_is_named(detail: str, classes: tuple[str, ...]) -> None:
    body = {"errors": [{"detail": detail, "code": "placement.inventory.inuse"}]}
    writer = Writer(Play(version("1.39"), answer(409, body)).client(), STATE)
    with pytest.raises(InventoryInUse) as error:
        writer.write(SetInventories(provider="c1", before={"VCPU": FOUR, "PCPU": FOUR}, after={}))
    assert (error.value.provider, error.value.resource_classes) == ("c1", classes)


def failing(progress: Progress, error: BaseException) -> None:
    """Confirm A, send B, fail; C is still to come."""
    progress.begin((A, B, C))
    progress.send((A,))
    progress.confirm()
    progress.send((B,))
    raise error


@pytest.mark.parametrize(
    ("status", "unconfirmed", "unwritten"),
    [
        pytest.param(400, (), (B, C), id="4xx: B is refused"),
        pytest.param(500, (B,), (C,), id="5xx: B may be written"),
        pytest.param(None, (B,), (C,), id="no answer: B may be written"),
    ],
)
def test_an_error_lists_the_changes(
    status: int | None, unconfirmed: tuple[Change, ...], unwritten: tuple[Change, ...]
) -> None:
    kind = PlacementUnavailable if status is None else PlacementRefused
    with pytest.raises(kind) as error:
        carry_out(lambda progress: failing(progress, kind("no", status=status)))
    assert error.value.written == (A,)
    assert (error.value.unconfirmed, error.value.unwritten) == (unconfirmed, unwritten)


def test_ctrl_c_lists_the_changes() -> None:
    with pytest.raises(Interrupted) as error:
        carry_out(lambda progress: failing(progress, KeyboardInterrupt()))
    assert (error.value.written, error.value.unconfirmed) == ((A,), (B,))


@pytest.mark.parametrize(
    ("second_plan", "written"),
    [
        pytest.param((B,), (A, B), id="A is not planned again: the first attempt has written A"),
        pytest.param((A, B), (A, B), id="A is planned again: the second attempt writes A"),
    ],
)
def test_a_conflict_starts_an_attempt_with_fresh_reads(
    second_plan: tuple[Change, ...], written: tuple[Change, ...]
) -> None:
    plans = [(A, B), second_plan]

    def attempt(progress: Progress) -> None:
        plan = plans.pop(0)
        progress.begin(plan)
        for change in plan:
            progress.send((change,))
            if plans:
                raise GenerationConflict("the answer was lost, and the repetition is refused")
            progress.confirm()

    assert carry_out(attempt) == written
    assert plans == []
