"""Generations of consecutive writes, and the report of an operation that fails."""

from typing import Any

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.errors import (
    DataChanged,
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
    Step,
)
from cpu_tiers.tools.http.retries import RetryPolicy
from cpu_tiers.tools.placement.writer import Progress, Writer, carry_out
from tests.unit.placement.scripted import Play, answer, version

NO_PAUSES = RetryPolicy(sleep=lambda _: None, conflict_attempts=4)
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


CLAIMED = answer(409, {"errors": [{"detail": "no", "code": "placement.concurrent_update"}]})


def test_a_claim_between_read_and_write_costs_a_single_read_of_the_provider() -> None:
    """The state was read as 7. Claims make it 8, and 10 between the two writes."""
    none: dict[str, Any] = {"inventories": {}}
    play = Play(
        version("1.39"),
        CLAIMED,
        answer(200, {**none, "resource_provider_generation": 8}),
        answer(200, {**none, "resource_provider_generation": 9}),
        CLAIMED,
        answer(200, {"traits": [], "resource_provider_generation": 10}),
        answer(200, {"traits": ["CUSTOM_A"], "resource_provider_generation": 11}),
    )
    writer = Writer(play.client(), STATE)
    writer.write(SetInventories(provider="c1", before={}, after={"VCPU": FOUR}))
    writer.write(SetTraits(provider="c1", before=frozenset(), after=frozenset({"CUSTOM_A"})))
    # The traits were read as 7, too. Whether they are the same now, only a new read tells, so
    # the generation 9 of the write before is not used.
    assert [
        (method, path.rpartition("/")[2], body and body["resource_provider_generation"])
        for method, path, body in sent(play)
    ] == [
        *(("PUT", "inventories", 7), ("GET", "inventories", None), ("PUT", "inventories", 8)),
        *(("PUT", "traits", 7), ("GET", "traits", None), ("PUT", "traits", 10)),
    ]
    assert play.pauses == []


@pytest.mark.parametrize(
    ("step", "present", "what"),
    [
        pytest.param(
            SetInventories(provider="c1", before={"VCPU": FOUR}, after={}),
            {"inventories": {}},
            "inventories",
            id="inventories",
        ),
        pytest.param(
            SetTraits(provider="c1", before=frozenset({"T"}), after=frozenset()),
            {"traits": []},
            "traits",
            id="traits",
        ),
    ],
)
def test_a_change_of_another_client_is_not_overwritten(
    step: Step, present: dict[str, Any], what: str
) -> None:
    now = answer(200, {**present, "resource_provider_generation": 8})
    play = Play(version("1.39"), CLAIMED, now)
    with pytest.raises(DataChanged, match=f"c1: another client has changed the {what} since"):
        Writer(play.client(), STATE).write(step)


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
    ("status", "resent", "unconfirmed", "unwritten"),
    [
        pytest.param(400, False, (), (B, C), id="4xx: B is refused"),
        pytest.param(400, True, (B,), (C,), id="4xx to a repetition: the first may be written"),
        pytest.param(500, False, (B,), (C,), id="5xx: B may be written"),
        pytest.param(None, False, (B,), (C,), id="no answer: B may be written"),
    ],
)
def test_an_error_lists_the_changes(
    status: int | None,
    resent: bool,
    unconfirmed: tuple[Change, ...],
    unwritten: tuple[Change, ...],
) -> None:
    kind = PlacementUnavailable if status is None else PlacementRefused
    failure = kind("no", status=status)
    failure.resent = resent
    with pytest.raises(kind) as error:
        carry_out(NO_PAUSES, lambda progress: failing(progress, failure))
    assert error.value.written == (A,)
    assert (error.value.unconfirmed, error.value.unwritten) == (unconfirmed, unwritten)


def test_ctrl_c_lists_the_changes() -> None:
    with pytest.raises(Interrupted) as error:
        carry_out(NO_PAUSES, lambda progress: failing(progress, KeyboardInterrupt()))
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

    assert carry_out(NO_PAUSES, attempt) == written
    assert plans == []
