"""Reading and writing consumers, inventories and providers."""

import math

import pytest

from cpu_tiers.model.inventory import Inventory
from cpu_tiers.placement.errors import PlacementAnswerInvalid
from cpu_tiers.placement.records import Consumer, inventory_json, read_inventory
from tests.unit.placement.scripted import Play, answer, version


def test_below_1_38_a_consumer_has_no_type() -> None:
    consumer = {
        "allocations": {"rp": {"resources": {"VCPU": 1}}},
        "consumer_generation": 3,
        "project_id": "p",
        "user_id": "u",
    }
    play = Play(version("1.37"), answer(200, consumer), answer(204, b""))
    client = play.client()
    client.set_consumers(client.consumer("x"))
    assert play.sent[2][2]["json"] == {"x": consumer}


def test_a_type_that_placement_does_not_know_is_not_sent_back() -> None:
    consumer = {
        "allocations": {"rp": {"resources": {"VCPU": 1}}},
        "consumer_generation": 3,
        "project_id": "p",
        "user_id": "u",
        "consumer_type": "unknown",  # from before 1.38; Placement refuses it in a request
    }
    play = Play(version("1.39"), answer(200, consumer))
    assert play.client().consumer("x").consumer_type == "INSTANCE"


@pytest.mark.parametrize(
    ("parent", "root", "expected"),
    [
        pytest.param("p", "r", "p", id="a child"),
        pytest.param(None, "x", None, id="a root is its own root"),
    ],
)
def test_the_parent_of_a_provider(parent: str | None, root: str, expected: str | None) -> None:
    item = {
        "uuid": "x",
        "name": "c1",
        "root_provider_uuid": root,
        "parent_provider_uuid": parent,
    }
    play = Play(version("1.39"), answer(200, item))
    assert play.client().provider("x").parent == expected


def test_an_inventory_is_written_with_placements_fields_only() -> None:
    inventory = Inventory(total=8, max_unit=4, reserved=1, step_size=2, ratio_is_initial=True)
    body = inventory_json(inventory)
    assert body == {
        "total": 8,
        "reserved": 1,
        "min_unit": 1,
        "max_unit": 4,
        "step_size": 2,
        "allocation_ratio": 1.0,
    }
    assert inventory_json(read_inventory(body)) == body


def test_an_unknown_consumer_has_no_allocations_and_no_generation() -> None:
    play = Play(version("1.39"), answer(200, {"allocations": {}}))
    assert play.client().consumer("x") == Consumer(uuid="x", generation=None)


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        (-1, "JSON with -1 of VCPU"),
        ("1", "JSON whose 'VCPU' is not of type int"),
        (1.5, "JSON whose 'VCPU' is not of type int"),
        (None, "JSON whose 'VCPU' is not of type int"),
        (True, "JSON whose 'VCPU' is not of type int"),
    ],
)
def test_an_amount_that_placement_would_not_send(amount: object, said: str) -> None:
    held = {"resources": {"VCPU": amount}}
    bodies = {
        "usages": {"usages": {"VCPU": amount}},
        "allocations": {"allocations": {"x": held}},
        "consumer": {"allocations": {"p": held}},
    }
    for method, body in bodies.items():
        client = Play(version("1.39"), answer(200, body)).client()
        with pytest.raises(PlacementAnswerInvalid, match=said):
            getattr(client, method)("x")


def test_a_ratio_that_is_no_number() -> None:
    inventory = {**inventory_json(Inventory(total=1, max_unit=1)), "allocation_ratio": math.inf}
    body = {"inventories": {"VCPU": inventory}, "resource_provider_generation": 1}
    client = Play(version("1.39"), answer(200, body)).client()
    with pytest.raises(PlacementAnswerInvalid, match="JSON with the allocation_ratio inf"):
        client.inventories("x")
